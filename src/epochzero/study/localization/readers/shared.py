"""The shared format: the output of `epochzero study import`; Denchmark and BuGL are also available in it."""

from __future__ import annotations

from typing import Any

LEAST_MATCH = 0.5
"""BuGL names no commits: for commits that were searched for in the history, ``match`` is the overlap of the
commit's files with those that BuGL lists."""


def read(row: dict[str, Any]) -> dict[str, Any] | str:
    """Return the record, or why it is invalid."""
    if not isinstance(row.get("id"), str) or not isinstance(row.get("project"), str):
        return "its id or its project is missing"
    match = row.get("match")
    if isinstance(match, int | float) and match < LEAST_MATCH:
        return "the commit found for it changes files other than those it lists"
    return row
