"""What the site shows besides its pages, and what holds it to its promises."""
