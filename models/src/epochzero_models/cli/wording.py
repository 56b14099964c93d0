"""How the model commands print estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochzero.reports import Estimate


def share(value: float | None) -> str:
    """Format a share as a percentage.

    >>> share(None)
    'none'
    """
    return "none" if value is None else f"{100 * value:.1f}\xa0%"


def share_with_interval(one: Estimate) -> str:
    """Format a share and its interval as percentages."""
    if one.value is None or one.interval is None:
        return "not defined"
    low, high = one.interval
    return f"{share(one.value)} ({100 * low:.1f} to {100 * high:.1f}\xa0%)"


def value_with_interval(one: Estimate, sign: str = "", undefined: str = "not defined") -> str:
    """Format a value and its interval; ``sign`` is ``+`` for a difference."""
    if one.value is None:
        return undefined
    told = f"{one.value:{sign}.3f}"
    if one.interval is None:
        return told
    low, high = one.interval
    return f"{told} ({low:{sign}.3f} to {high:{sign}.3f})"
