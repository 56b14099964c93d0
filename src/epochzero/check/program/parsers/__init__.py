"""How each library that reads a command line would read it: one file a library."""
