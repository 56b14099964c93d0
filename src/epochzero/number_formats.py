"""Numbers as people read them: on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ranks_text(numbers: Iterable[int]) -> str:
    """``rank 3``, ``ranks 0-2, 5``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    several = len(spans) > 1 or (spans[:1] and spans[0][0] < spans[0][1])
    texts = [
        f"{first}-{last}" if last > first + 1 else ", ".join(map(str, range(first, last + 1)))
        for first, last in spans
    ]
    return f"rank{'s' * bool(several)} {', '.join(texts)}"


def shorten(text: str, length: int) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= length else text[: length - 1] + "…"


def duration(seconds: float) -> str:
    """3 d 04 h, 2 h 05 min, 7 min 30 s or 12 s."""
    minutes, second = divmod(round(max(0.0, seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour:02d} h"
    if hours:
        return f"{hours} h {minute:02d} min"
    return f"{minutes} min {second:02d} s" if minutes else f"{second} s"


def size(count: float) -> str:
    """1.5 GB, 320 MB, 12 kB or 86 B."""
    for unit, number in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= number:
            return f"{count / number:.3g} {unit}"
    return f"{count:.0f} B"
