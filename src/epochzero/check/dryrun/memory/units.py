"""Bytes, for people."""

from __future__ import annotations

__all__ = ["GIB", "MIB", "size_text"]

MIB = 1 << 20
GIB = 1 << 30


def size_text(size: float) -> str:
    """Bytes in GiB or MiB.

    >>> size_text(5 * GIB // 2), size_text(8519680), size_text(0)
    ('2.5 GiB', '8.12 MiB', '0')
    """
    if size == 0:
        return "0"
    number, unit = (size / GIB, "GiB") if size >= GIB else (size / MIB, "MiB")
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
