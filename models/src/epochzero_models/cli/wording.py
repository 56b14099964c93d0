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


def share_with_interval(estimate: Estimate) -> str:
    """Format a share and its interval as percentages."""
    if estimate.value is None or estimate.interval is None:
        return "not defined"
    low, high = estimate.interval
    return f"{share(estimate.value)} ({100 * low:.1f} to {100 * high:.1f}\xa0%)"


def value_with_interval(estimate: Estimate, sign: str = "", undefined: str = "not defined") -> str:
    """Format a value and its interval; ``sign`` is ``+`` for a difference."""
    if estimate.value is None:
        return undefined
    value = f"{estimate.value:{sign}.3f}"
    if estimate.interval is None:
        return value
    low, high = estimate.interval
    return f"{value} ({low:{sign}.3f} to {high:{sign}.3f})"
