"""The states of jobs, attempts and ranks."""

from __future__ import annotations

STATES = ("running", "succeeded", "failed", "cancelled", "ended", "lost")
"""``cancelled``: stopped by a person; ``ended``: terminated by its launcher because another rank failed;
``lost``: its supervisor exited without a final record.
"""

JOB_STATES = tuple(state for state in STATES if state != "ended")
"""States of jobs and attempts; an attempt with a terminated rank has failed."""

FINAL = frozenset(STATES) - {"running"}
"""States without a successor."""
