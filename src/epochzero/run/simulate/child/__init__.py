"""What holds a job's own Python to the simulated platform; runs in the job's process."""
