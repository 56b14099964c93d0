"""The program of a job, read as a whole without running it."""
