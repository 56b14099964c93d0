"""What runs inside the job's own Python: the standard library only, and torch where it is needed."""
