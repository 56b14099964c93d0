"""Database of jobs, diagnoses and findings: one schema for SQLite and PostgreSQL."""
