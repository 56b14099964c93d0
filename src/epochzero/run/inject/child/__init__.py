"""Faults within the job's own process; requires only the standard library."""
