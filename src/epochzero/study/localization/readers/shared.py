"""The shared format: what `epochzero study import` writes; Denchmark and BuGL are given in it, too."""

from __future__ import annotations

from typing import Any

LEAST_MATCH = 0.5
"""BuGL names no commits: where they were looked for in the history, ``match`` is how far the files of
the commit that was found are those that BuGL lists."""


def read(row: dict[str, Any]) -> dict[str, Any] | str:
    """The record, or why it is none."""
    if not isinstance(row.get("id"), str) or not isinstance(row.get("project"), str):
        return "its id or its project is missing"
    match = row.get("match")
    if isinstance(match, int | float) and match < LEAST_MATCH:
        return "the commit that was found for it changes other files than it lists"
    return row
