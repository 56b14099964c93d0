"""Selects the hits of a block of a log in which very many lines have cues.

Each hit is parsed and judged in Python, which takes a hundred times as long as finding it. Lines with the
same set of cues report the same in other words, so the first and the last of them decide a diagnosis. The
texts of signatures are cues: a line that only one signature knows is of a kind of its own.

A traceback is selected as a whole, by the cues of all its lines.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt

from epochzero.logs.patterns import NUMBER_BITS
from epochzero.logs.source import Block

ALIKE_LINES = 8
"""Number of hits with the same cues that are selected from the start of a log, and from the end of each
block near its end.
"""
MOST_LINES = 500
"""Number of hits that are selected from the start of a log. Later, until the end is near, only the first
of each kind is selected, and no traceback as a whole.
"""
TAIL_BYTES = 1 << 20
"""Size of the end of a log in which the last hits of each block are selected too."""
RECENT_BLOCKS = 4
"""A region is in at most this many blocks."""
TRACEBACK_LINES, FRAME_LINES, OTHER_LINES = 80, 4, 3
"""A traceback has at most this many lines, and this many of each of its frames; its last line and lines
of other processes between are at most so many.
"""

Offsets = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint64]
"""Sets of cues, as a few bits of each."""
Flags = npt.NDArray[np.bool_]


class DenseBlocks:
    """Selects hits in the dense blocks of one log.

    Args:
        headers: cues with which a traceback starts.
        frames: cues of lines inside a traceback.
        first_completion: cues from this number on do not make a line a hit.
        first_chatter: a line with a cue from this number on is no hit.
        size: of the log, in bytes; 0 if unknown.

    Attributes:
        passed_over: the lines that were not selected.
    """

    def __init__(
        self,
        headers: AbstractSet[int],
        frames: AbstractSet[int],
        first_completion: int,
        first_chatter: int,
        size: int,
    ) -> None:
        self._headers, self._frames = np.array(sorted(headers)), np.array(sorted(frames))
        self._first_completion, self._first_chatter = first_completion, first_chatter
        self._tail_from = max(0, size - TAIL_BYTES)
        self._seen: Counter[int] = Counter()
        self._left = MOST_LINES
        self.passed_over = PassedOver()

    def select(self, block: Block, matches: array[int]) -> Selection:
        """Selects hits of the next block.

        Args:
            block: whole lines.
            matches: end and number of each cue, as `PatternSet.packed_ends` packs them.
        """
        packed = np.frombuffer(matches, np.int64)
        ends, cues = packed >> NUMBER_BITS, packed & ((1 << NUMBER_BITS) - 1)
        line_ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n"))
        line_of_match = np.searchsorted(line_ends, ends - 1)
        chatter = np.zeros(len(line_ends) + 1, np.bool_)
        chatter[line_of_match[cues >= self._first_chatter]] = True
        is_hit = (cues < self._first_completion) & ~chatter[line_of_match]
        completes = (cues >= self._first_completion) & (cues < self._first_chatter)
        completions = ends[completes].tolist()
        line_of_match, cues = line_of_match[is_hit], cues[is_hit]
        first = np.flatnonzero(np.diff(line_of_match, prepend=-1))
        lines = line_of_match[first]
        if not len(lines):
            return Selection(lines, lines, lines, cues, np.zeros(0, np.bool_), completions)
        is_header = np.logical_or.reduceat(np.isin(cues, self._headers), first)
        is_frame = np.logical_and.reduceat(np.isin(cues, self._frames), first)
        kinds = np.bitwise_or.reduceat(_marks(self._first_completion)[cues], first)
        near_end = block.offset + len(block.data) > self._tail_from
        starts = block.offset + np.concatenate(([0], line_ends + 1))[lines]
        selected = self._selected(lines, kinds, np.flatnonzero(is_header), is_frame, near_end)
        if not selected.all():
            self.passed_over.add(starts[~selected])
        return Selection(
            starts=starts,
            ends=block.offset + np.append(line_ends, len(block.data))[lines],
            first=first,
            cues=cues,
            selected=selected,
            completions=completions,
        )

    def _selected(
        self, lines: Offsets, kinds: Kinds, headers: Offsets, frames: Flags, near_end: bool
    ) -> Flags:
        """Which of the hits are selected: those of rare kinds, and the whole traceback below a header."""
        if self._left <= 0 and not near_end:
            return self._rare(kinds, near_end=False)
        far = np.searchsorted(lines, lines[headers] + TRACEBACK_LINES)
        gaps = np.append(np.flatnonzero(np.diff(lines) > FRAME_LINES) + 1, len(kinds))
        gap = gaps[np.searchsorted(gaps, headers, side="right")]
        others = np.cumsum(~frames)
        end = np.searchsorted(others, others[headers] + OTHER_LINES) + 1
        following = np.append(headers, len(kinds))[1:]
        stops = np.minimum.reduce([far, gap, end, following])
        # A traceback is of the kind of all its lines together.
        together = kinds.copy()
        for header, stop in zip(headers, stops, strict=True):
            together[header] = np.bitwise_or.reduce(kinds[header:stop])
        selected = self._rare(together, near_end)
        changes = np.zeros(len(kinds) + 1, np.int64)
        chosen = selected[headers]
        np.add.at(changes, headers[chosen], 1)
        np.add.at(changes, stops[chosen], -1)
        return selected | (np.cumsum(changes[:-1]) > 0)

    def _rare(self, kinds: Kinds, near_end: bool) -> Flags:
        """Whether each hit is among the first of its kind in the log or, near its end, the last in the block."""
        unique, kind, counts = np.unique(kinds, return_inverse=True, return_counts=True)
        by_kind = np.argsort(kind, kind="stable")
        place = np.empty(len(kinds), np.int64)
        place[by_kind] = np.arange(len(kinds)) - np.repeat(np.cumsum(counts) - counts, counts)
        names = unique.tolist()
        seen = np.array([self._seen[name] for name in names])
        for name, count in zip(names, counts.tolist(), strict=True):
            self._seen[name] += count
        rare = seen[kind] + place < (ALIKE_LINES if self._left > 0 else 1)
        self._left -= int(np.count_nonzero(rare))
        return rare | (counts[kind] - place <= ALIKE_LINES) if near_end else rare


class PassedOver:
    """The lines of a log that have cues but are not hits: those of the last blocks, and their number.

    Attributes:
        count: number of all of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self._recent: deque[Offsets] = deque(maxlen=RECENT_BLOCKS)

    def add(self, offsets: Offsets) -> None:
        """Adds those of the next block."""
        self.count += len(offsets)
        self._recent.append(offsets)

    def between(self, start: int, end: int) -> frozenset[int]:
        """The offsets of those in a region of the last blocks."""
        return frozenset(
            chain.from_iterable(
                part[part.searchsorted(start) : part.searchsorted(end)].tolist()
                for part in self._recent
            )
        )

    def count_before(self, offset: int) -> int:
        """The number of those before an offset in the last blocks."""
        return self.count - sum(len(part) - int(part.searchsorted(offset)) for part in self._recent)


@dataclass(frozen=True, slots=True)
class Selection:
    """The lines of a block with cues.

    Attributes:
        starts, ends: offsets of each line in the log.
        first: index of each line's first cue.
        cues: of all lines, in order.
        selected: whether each line is a hit.
        completions: ends of texts in the block that report success.
    """

    starts: Offsets
    ends: Offsets
    first: Offsets
    cues: Offsets
    selected: Flags
    completions: list[int]

    def hits(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Start, end and cues of each hit."""
        stops = np.append(self.first, len(self.cues))[1:]
        for at in np.flatnonzero(self.selected).tolist():
            cues = self.cues[self.first[at] : stops[at]].tolist()
            yield int(self.starts[at]), int(self.ends[at]), tuple(cues)


@cache
def _marks(count: int) -> Kinds:
    """A few random bits for each cue; those of a set of cues are their union."""
    draw = np.random.default_rng(0)
    bits = draw.integers(0, 64, (count, 6), np.uint64)
    marks: Kinds = np.bitwise_or.reduce(np.uint64(1) << bits, axis=1)
    return marks
