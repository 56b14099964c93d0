"""Paths of a job: which calls take them, what is at them on the target, what is in the files."""
