"""What leaves the checkout: plain notebooks, and a launch on a server."""
