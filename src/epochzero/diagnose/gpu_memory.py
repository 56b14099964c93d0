"""Whether a GPU ran out of memory because other processes hold it, by the sizes that PyTorch prints."""

from __future__ import annotations

import re

CONTEXT_GIB = 1.5
"""Most of what CUDA's context and libraries of one process take in addition to PyTorch's own memory."""
MUCH = 1 / 8
"""Share of a GPU from which on others hold much of it."""
_SIZE = r"(\d[\d.]*) ?([KMGT]?)i?B(?:ytes)?"
_GIB = {"": 2.0**-30, "K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10}
_ASKED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_TOTAL = re.compile(rf"total capaci?ty of {_SIZE}|{_SIZE} total capacity")
_FREE = re.compile(rf"{_SIZE} (?:is )?free")
_OWN = re.compile(rf"this process has {_SIZE} memory in use")
_RESERVED = re.compile(rf"{_SIZE} reserved in total by PyTorch")


def held_by_others(message: str) -> bool:
    """Whether an empty GPU would have had room for what was asked for, as other processes hold much of this one.

    Args:
        message: of an allocation that failed; one without sizes answers no.
    """
    asked, total, free = (_gib(pattern, message) for pattern in (_ASKED, _TOTAL, _FREE))
    own = _gib(_OWN, message)
    if own is None and (reserved := _gib(_RESERVED, message)) is not None:
        own = reserved + CONTEXT_GIB
    if asked is None or total is None or free is None or own is None:
        return False
    return total - free - own > MUCH * total and own + asked <= total


def _gib(pattern: re.Pattern[str], message: str) -> float | None:
    found = pattern.search(message)
    if found is None:
        return None
    number, unit = (part for part in found.groups() if part is not None)
    return float(number) * _GIB[unit]
