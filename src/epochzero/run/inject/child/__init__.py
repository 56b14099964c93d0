"""What fails within the job's own process; it needs nothing but the standard library."""
