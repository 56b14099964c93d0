"""Bytes, for people."""

from __future__ import annotations

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def size_text(size: float) -> str:
    """Bytes in GiB, MiB or KiB.

    >>> size_text(5 * GIB // 2), size_text(8519680), size_text(4112), size_text(0)
    ('2.5 GiB', '8.12 MiB', '4.02 KiB', '0')
    """
    if size == 0:
        return "0"
    units = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
    number, unit = next((size / each, name) for each, name in units if size >= each or each == KIB)
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
