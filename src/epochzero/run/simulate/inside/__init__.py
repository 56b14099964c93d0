"""Sets up what a job sees of the machine, and then becomes the job."""
