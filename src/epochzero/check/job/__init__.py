"""A command line, and what it finally runs."""
