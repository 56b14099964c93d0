"""Searches bytes for many patterns at once in linear time; the only module that uses Hyperscan."""

from __future__ import annotations

import platform
import re
from array import array
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from functools import cache

import hyperscan

from epochzero import compiled

NUMBER_BITS = 16
OnMatch = Callable[[int, int], bool | None]
"""Called with the number of a pattern and the end of its match; returning true stops the scan."""


@cache
def literal(text: str) -> bytes:
    """A pattern that matches exactly ``text``."""
    return re.escape(text.encode())


class PatternSet:
    """Regular expressions that are searched together.

    Compiling thousands of them takes a tenth of a second, so the engine's database is stored
    (`epochzero.compiled`).

    Args:
        patterns: in the syntax that Hyperscan and ``re`` share: no look-around, no references.
        once: report each pattern at most once per scan.
        starts: report where matches start, for `spans`; slower.
    """

    def __init__(
        self, patterns: Sequence[bytes], *, once: bool = False, starts: bool = False
    ) -> None:
        flags = (hyperscan.HS_FLAG_SINGLEMATCH if once else 0) | (
            hyperscan.HS_FLAG_SOM_LEFTMOST if starts else 0
        )
        key = compiled.key_of((*_engine(), b"%d" % flags, *patterns))
        database = _loaded(key)
        if database is None:
            database = _compiled(patterns, flags)
            compiled.store(key, hyperscan.dumpb(database))
        self._database = database

    def ends(self, data: bytes) -> list[tuple[int, int]]:
        """The end of each match and the number of its pattern, in order."""
        found: list[tuple[int, int]] = []
        append = found.append
        self._database.scan(
            data, match_event_handler=lambda number, _start, end, _flags, _: append((end, number))
        )
        return found

    def packed_ends(self, data: bytes) -> array[int]:
        """The end of each match shifted by `NUMBER_BITS`, plus the number of its pattern, in order.

        Of a log that is full of matches, most time goes into one call for each of them.
        """
        found = array("q")
        append = found.append
        self._database.scan(
            data,
            match_event_handler=lambda number, _start, end, _flags, _: append(
                end << NUMBER_BITS | number
            ),
        )
        return found

    def spans(self, data: bytes) -> list[tuple[int, int, int]]:
        """Start and end of each match and the number of its pattern, ordered by end."""
        found: list[tuple[int, int, int]] = []
        append = found.append
        self._database.scan(
            data,
            match_event_handler=lambda number, start, end, _flags, _: append((start, end, number)),
        )
        return found

    def walk(self, data: bytes, on_match: OnMatch) -> bool:
        """Calls ``on_match`` for each match until it returns true; returns whether it did."""
        try:
            self._database.scan(
                data,
                match_event_handler=lambda number, _start, end, _flags, _: on_match(number, end),
            )
        # The engine reports a scan that its callback stopped as an error.
        except hyperscan.ScanTerminated:
            return True
        return False


class Subset(PatternSet):
    """A pattern set whose `packed_ends` leaves out some patterns; nothing is compiled for it."""

    def __init__(self, whole: PatternSet, left_out: Set[int]) -> None:
        self._database = whole._database
        self._left_out = left_out

    def packed_ends(self, data: bytes) -> array[int]:
        """The end of each match and the number of its pattern, as `PatternSet.packed_ends` has it."""
        left_out, mask = self._left_out, (1 << NUMBER_BITS) - 1
        return array("q", (m for m in super().packed_ends(data) if m & mask not in left_out))


@cache
def _engine() -> tuple[bytes, ...]:
    """The engine's release and the processor features that it uses, which a database depends on."""
    return platform.machine().encode(), str(_compiled([b"a"], 0).info()).encode()


def _compiled(patterns: Sequence[bytes], flags: int) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=list(patterns),
        ids=list(range(len(patterns))),
        elements=len(patterns),
        flags=[flags] * len(patterns),
    )
    return database


def _loaded(key: str) -> hyperscan.Database | None:
    """The stored database of a key; None if none exists or the engine rejects it."""
    item = compiled.load(key)
    if item is None:
        return None
    with suppress(hyperscan.HyperscanError):
        database = hyperscan.loadb(item, hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)
        return database
    return None
