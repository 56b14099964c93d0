"""How much GPU memory a job will take, from the trace of a dry run: allocator, workspaces, estimate."""
