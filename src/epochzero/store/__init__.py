"""What was learned of jobs, kept: one schema, two databases."""
