"""Database of jobs, diagnoses and findings: one schema for SQLite and PostgreSQL.

Every function that is given a `Database` raises `StoreError` if it does not respond or cannot be written.
"""
