"""A platform: what is installed, mounted and allowed there."""
