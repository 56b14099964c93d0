"""Numbers in sentences."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share with the digits that it needs: ``35%``, ``0.4%``, ``2e-05%``; ``0%`` is exactly nothing."""
    size = abs(share) * 100
    if size == 0 or size >= 10:
        return f"{share:.0%}"
    return f"{share * 100:.2g}%" if size >= 1 else f"{share * 100:.1g}%"
