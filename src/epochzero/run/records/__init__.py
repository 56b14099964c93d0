"""What is stored of a job: its records, their journal, its logs, and what it ran in."""
