"""The job's own script, run dry: without GPU, within limits, and without lasting effect."""
