"""The states of jobs, attempts and ranks."""

from __future__ import annotations

STATES = ("running", "succeeded", "failed", "cancelled", "ended", "lost")
"""``cancelled``: a person ended it; ``ended``: a rank that its launcher ended since another had failed;
``lost``: its supervisor died without a word."""

JOB_STATES = tuple(state for state in STATES if state != "ended")
"""Of a job and its attempts: one whose rank was ended has failed."""

FINAL = frozenset(STATES) - {"running"}
"""In which nothing more happens."""
