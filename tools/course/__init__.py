"""The course that is made from the problem sets."""
