"""The command-line libraries, one file each: how each reads a command line."""
