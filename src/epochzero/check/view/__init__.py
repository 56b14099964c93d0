"""What rules ask of a job: queries on its events, its syntax, the libraries and the platform."""
