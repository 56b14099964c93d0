"""The rank of the job's own process, by the variables that launchers set."""

from __future__ import annotations

from collections.abc import Mapping

RANKS_VARIABLE = "EPOCHZERO_RANK_VARIABLES"
"""Lists them, since the catalogue of launchers cannot be read here."""


def own_rank(environment: Mapping[str, str]) -> int:
    """The rank of a process with these variables; 0 if it has none."""
    names = environment.get(RANKS_VARIABLE, "RANK").split(",")
    given = (environment.get(name, "") for name in names)
    return next((int(text) for text in given if text.isdigit()), 0)
