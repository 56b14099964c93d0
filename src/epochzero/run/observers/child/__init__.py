"""Runs in the job's own process, which may have another Python: standard library only, torch where imported."""
