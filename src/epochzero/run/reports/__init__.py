"""What leaves a run: the report of a failure, notifications, spans, and uploads to a service."""
