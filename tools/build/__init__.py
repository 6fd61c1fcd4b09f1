"""Executing the pages and writing the site."""
