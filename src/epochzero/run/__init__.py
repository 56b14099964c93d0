"""Everything while a job runs: supervise it, keep what matters, retry only when it helps."""
