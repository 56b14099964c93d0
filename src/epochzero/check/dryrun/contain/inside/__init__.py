"""Runs a job's command under containment, in processes of its own."""
