"""The states of jobs, attempts and ranks."""

from __future__ import annotations

__all__ = ["FINAL", "STATES"]

STATES = ("running", "succeeded", "failed", "cancelled", "lost")
"""``cancelled``: a person ended it; ``lost``: its supervisor died without a word."""

FINAL = frozenset(STATES) - {"running"}
"""In which nothing more happens."""
