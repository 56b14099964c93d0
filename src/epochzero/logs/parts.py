"""Scans one large log in parts; the joined result equals that of a single pass.

A part starts where a single pass has no open region: at the end of a block whose last `GAP_BYTES` contain no
hit. This depends only on the surrounding bytes, so each part finds its own limits. If such places are rare in a log,
some parts are empty and others long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import BinaryIO

from epochzero.logs import scan as scanning
from epochzero.logs import source
from epochzero.logs.scan import (
    START,
    Region,
    RetainedRegions,
    Scan,
    Scanner,
    Window,
    cost,
    newlines,
    openings,
)
from epochzero.logs.source import Block, blocks_from

SEARCHED_BLOCKS = 8
"""Number of blocks that are searched for the start of a part."""


@dataclass(frozen=True, slots=True)
class PartScan:
    """The scan of one part of a log.

    Attributes:
        scan: lines and progress are counted from the start of the part.
        lines: number of lines.
    """

    scan: Scan
    lines: int


class TooManyError(Exception):
    """A part has more regions than may be retained for the whole log."""


def starts_of(size: int, step: int) -> tuple[int, ...]:
    """Approximate starts of the parts of a log.

    Args:
        size: of the log, in bytes.
        step: approximate size of a part; the last may be half as long again.
    """
    step = max(1, step // source.BLOCK_BYTES) * source.BLOCK_BYTES
    return tuple(range(0, max(1, size - step // 2), step))


def scan_part(
    scanner: Scanner, stream: BinaryIO, size: int, starts: Sequence[int], number: int
) -> PartScan | None:
    """Scans one part of a log.

    Args:
        scanner: the same for all parts.
        stream: the log, uncompressed and seekable.
        size: of the log, in bytes.
        starts: approximate starts of its parts, see `starts_of`.
        number: index of the part.

    Returns:
        None if too much is found; the log must then be scanned in one pass.
    """
    place = _place(scanner, stream, starts[number])
    if place is None:
        return PartScan(Scan(), 0)
    begin, before = place
    later = (_place(scanner, stream, start) for start in starts[number + 1 :])
    stop = next((found[0] for found in later if found), size)
    window = Window(before)
    blocks = dropwhile(lambda block: block.offset < begin, _blocks_around(stream, starts[number]))
    try:
        scan = scanner.scan_blocks(
            takewhile(lambda block: block.offset < stop, blocks),
            window,
            _All(size),
            Scan(openings=openings(next(blocks_from(stream, 0), START).data)),
        )
    except TooManyError:
        return None
    if scan.dense:
        return None  # what is passed over depends on the blocks before
    known = newlines(before.data, 0, len(before.data))
    regions = [replace(region, line=region.line - known) for region in scan.regions]
    lines = window.line_number(window.end) - 1 - known
    return PartScan(replace(scan, regions=regions), lines)


def join_parts(scanner: Scanner, parts: Sequence[PartScan], size: int) -> Scan | None:
    """The result that one pass over the log would have.

    Args:
        scanner: as for the parts.
        parts: all of them, in order.
        size: of the log, in bytes.

    Returns:
        None if the log has too many kinds of regions to determine this.
    """
    whole, kept = Scan(), RetainedRegions(size)
    lines = 0
    for part in parts:
        scan = part.scan
        for region in scan.regions:
            key = scanner.key(region.between, region.hits)
            if kept.wants(key, region.hits[-1].end):
                blocks = region.progress_blocks + whole.progress_blocks
                kept.add(replace(region, line=region.line + lines, progress_blocks=blocks), key)
        lines += part.lines
        whole.skipped += scan.skipped
        whole.progress_blocks += scan.progress_blocks
        whole.size = max(whole.size, scan.size)
        whole.completed = max(whole.completed, scan.completed)
        whole.note_ends(scan.head, scan.tail)
        whole.nuls += scan.nuls
        whole.starts += scan.starts
        for work, offsets in scan.work.items():
            whole.work.setdefault(work, []).extend(offsets)
    whole.regions = kept.regions()
    whole.skipped += kept.skipped
    scanner.finish(whole)
    return whole if kept.complete else None


def _place(scanner: Scanner, stream: BinaryIO, start: int) -> tuple[int, Block] | None:
    """The exact start of a part and the bytes before it; None if none is found in
    `SEARCHED_BLOCKS`.
    """
    if not start:
        return 0, Block(0, b"")
    before, last_hit = Block(0, b""), -1
    for block in _blocks_around(stream, start):
        if block.offset >= start + SEARCHED_BLOCKS * source.BLOCK_BYTES:
            break
        near = last_hit >= 0 and block.offset - last_hit <= scanning.GAP_BYTES
        if block.offset >= start and len(before.data) > scanning.GAP_BYTES and not near:
            return block.offset, before
        if len(before.data) and len(block.data) <= scanning.GAP_BYTES:
            before = Block(before.offset, before.data + block.data)
        else:
            before = block
        if hits := scanner.hits(block, Scan()):
            last_hit = hits[-1].end
    return None


def _blocks_around(stream: BinaryIO, start: int) -> Iterator[Block]:
    """The blocks starting shortly before a position."""
    lead = source.BLOCK_BYTES * (2 + scanning.GAP_BYTES // source.BLOCK_BYTES)
    return blocks_from(stream, max(0, start - lead))


class _All(RetainedRegions):
    """All regions of a part that the whole log may retain."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._all: list[Region] = []
        self._bytes = 0

    def add(self, region: Region, key: int) -> None:
        """Adds a region that follows all others.

        Raises:
            TooManyError: the limit is exceeded.
        """
        self._seen[key] = self._seen.get(key, 0) + 1
        self._all.append(region)
        self._bytes += cost(region)
        if self._bytes > scanning.KEPT_BYTES:
            raise TooManyError

    def regions(self) -> list[Region]:
        """The retained regions, in order."""
        return self._all
