"""A job run dry: its own script with its own arguments, in a child process, its loops shortened."""
