"""What runs inside the job's own Python: standard library only, torch where the job has it."""
