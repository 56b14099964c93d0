"""Scans the bytes of a log in one pass.

Hyperscan searches for every literal cue (``cues.toml``) and every anchor of a signature at once, in linear
time. Lines with a cue are stored together with their neighbours as `Region` values;
other lines are never decoded. Memory is limited: of regions that look alike, the first and the
last are retained, and of all regions at most `KEPT_BYTES` from either end of the log.
"""

from __future__ import annotations

import re
import tomllib
from array import array
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from epochzero.logs.patterns import NUMBER_BITS, PatternSet, Subset, literal
from epochzero.logs.prefix import strip_ansi
from epochzero.logs.progress import ProgressLine, progress_lines
from epochzero.logs.source import Block, Log

if TYPE_CHECKING:
    from epochzero.logs.dense import DenseBlocks

BEFORE_LINES = 3
AFTER_LINES = 12
GAP_BYTES = 4096
"""Hits with a larger distance are in different regions, whatever the number of lines between them;
a region extends at most this far before its first and after its last hit.
"""
REGION_BYTES = 1 << 18
ALIKE = 24
"""Number of similar regions that are retained at the start and at the end of a log."""
KEPT_BYTES = 24 << 20
REGION_COST, HIT_COST = 1000, 300
"""Approximate size of a region and of each of its hits in addition to the text, in bytes."""
KIND_COST = 2000
"""Additional cost of each kind of line in a region, in bytes. Each kind is judged separately,
in about 0.1 ms: a log in which every line differs must not take minutes.
"""
PROGRESS_LINES = 8
"""Number of progress lines after a region that decide whether the job continued."""
TAIL_BYTES = 16 << 20
"""Size of the end of a log in which the last regions of every kind are retained."""
PROGRESS_BYTES = 1 << 16
"""Distance after a region within which progress is searched for."""
LEAD_BYTES = 512
"""Distance before a region within which progress is searched for: the last few lines."""
SAMPLE_BYTES = 1 << 14
"""Size of the start of each block that is searched for progress."""
SAMPLE_LINES = 8
"""Number of its first, and of its last lines with progress that are read."""
END_BYTES = 4096
FEW_BYTES = 1 << 19
MOST_KINDS = 100_000
START = Block(0, b"")
DENSE_MATCHES = 2000
"""A block of 1 MiB with more cues is read by `epochzero.logs.dense`."""


class Hit(NamedTuple):
    """A line with cues: its position in the log, and the numbers of the cues.

    ``thinned`` marks a hit of a block in which many lines have the same cues, so that only the first and
    the last of them are hits.
    """

    start: int
    end: int
    cues: tuple[int, ...]
    thinned: bool = False


_NAMED_RANK = re.compile(rb"(?i)rank[ _:=-]{0,2}(\d{1,4})\b(?![.:\d]|\]:)")
"""How a program that runs once a rank names itself; torchrun's own prefix ends with a colon."""


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring lines of a log, some of them hits.

    Attributes:
        offset: of the first byte, in the uncompressed log.
        line: number of the first line, from 1.
        text: the bytes, complete lines.
        hits: the lines with cues, in order; positions count from the start of the log.
        progress: offset and bytes of lines that show progress: all of those in the region and shortly
            before it, and the first few after it, at most `PROGRESS_LINES`.
        progress_blocks: number of blocks with progress before the end of the region.
        kinds: number of hits that differ in more than digits.
        passed_over: offsets of lines that have cues but are not hits, because many others have the same.
        passed_before: number of such lines before the region.
    """

    offset: int
    line: int
    text: bytes
    hits: tuple[Hit, ...]
    progress: tuple[tuple[int, bytes], ...]
    progress_blocks: int
    kinds: int = 0
    passed_over: frozenset[int] = frozenset()
    passed_before: int = 0

    def between(self, start: int, end: int) -> bytes:
        """The bytes between two offsets of the log."""
        return self.text[start - self.offset : end - self.offset]


@dataclass(slots=True)
class Scan:
    """The result of one pass.

    Attributes:
        regions: ordered by offset.
        size: number of bytes read.
        skipped: number of regions that were dropped because many others look like them.
        progress_blocks: blocks that show progress.
        work: of each kind of work, offsets of lines in the samples of blocks and at the end that show it.
        completed: offset of the last text that reports success; -1 if none exists.
        openings: texts of the first lines, which the next run in the same file repeats.
        starts: offsets at which a run may start, in order; searched after the first hit.
        head, tail: the first and the last bytes of the log.
        nuls: number of NUL bytes.
        damage: messages about parts that could not be read because compressed data are truncated or damaged.
        expected_size: size of the log, in bytes; 0 if unknown.
        dense: selects the hits of blocks with too many.
    """

    regions: list[Region] = field(default_factory=list)
    size: int = 0
    skipped: int = 0
    progress_blocks: int = 0
    work: dict[str, list[int]] = field(default_factory=dict)
    completed: int = -1
    openings: tuple[bytes, ...] = field(default=(), compare=False, repr=False)
    starts: list[int] = field(default_factory=list)
    head: bytes = b""
    tail: bytes = b""
    nuls: int = 0
    damage: tuple[str, ...] = ()
    expected_size: int = field(default=0, compare=False, repr=False)
    dense: DenseBlocks | None = field(default=None, compare=False, repr=False)

    @property
    def passed_over(self) -> int:
        """Number of lines that have cues but are not hits, because many others have the same."""
        return self.dense.passed_over.count if self.dense else 0

    @property
    def blank(self) -> bool:
        """Whether the log contains no readable text: it is empty, or contains only blanks and NUL bytes."""
        text = strip_ansi((self.head + self.tail).decode("utf-8", "replace"))
        read = self.regions or self.progress_blocks
        return not read and not text.replace("\0", "").strip()

    @property
    def named_rank(self) -> int | None:
        """The rank that the log names as its own: the only one that its ends name, more than once."""
        named = _NAMED_RANK.findall(self.head + self.tail)
        return int(named[0]) if len(named) > 1 and len(set(named)) == 1 else None

    def note_openings(self, block: Block) -> None:
        """Records where a block repeats the first lines of the log."""
        for opening in self.openings:
            at = block.data.find(opening)
            if not block.offset:
                at = block.data.find(
                    opening, at + len(opening)
                )  # the first one is the opening itself
            while at >= 0 and len(self.starts) < MOST_STARTS:
                self.starts.append(block.offset + at)
                at = block.data.find(opening, at + len(opening))

    def sort_starts(self) -> None:
        """Sorts the starts of runs, and drops those before the first error: they end no run."""
        first = self.regions[0].hits[0].start if self.regions else self.size
        self.starts = sorted(start for start in self.starts if start > first)

    def note_work(self, lines: Iterable[ProgressLine]) -> None:
        """Records what work lines with progress show."""
        for line in lines:
            if line.work:
                insort(self.work.setdefault(line.work, []), line.offset)

    def note_ends(self, head: bytes, tail: bytes) -> None:
        """Updates head and tail of the log with the ends of the next part."""
        if len(self.head) < END_BYTES:
            self.head = (self.head + head[:END_BYTES])[:END_BYTES]
        self.tail = (self.tail + tail[-END_BYTES:])[-END_BYTES:]


MOST_OPENINGS, MOST_STARTS = 4, 2000
_OPENING = re.compile(rb"[^\d\s][^\d\r\n\x1b]{14,}[^\d\s\x1b]")
_SENTENCE = re.compile(rb"[A-Za-z]{2,}(?:[,:]? +[\w`'/-]{2,}){3}")
_NO_OPENING = re.compile(
    rb"^\s|Traceback|File \"|[Rr]ank ?\d|[Ee]rror|Assert|pilog|[Aa]bort|[Ss]ignal|[Kk]ill|[Cc]ancel|[Tt]erminat"
)
"""In lines of a traceback, of one rank, of a failure, or of the end of a job."""


def openings(data: bytes) -> tuple[bytes, ...]:
    """Texts by which the first lines of a log are recognized when the next run prints them again.

    They contain no digits, because times, process identifiers and addresses differ between runs.
    """
    found: dict[bytes, None] = {}
    for line in data[:END_BYTES].partition(b"Traceback")[0].split(b"\n")[:-1]:
        pieces = (
            () if _NO_OPENING.search(line) else filter(_SENTENCE.search, _OPENING.findall(line))
        )
        if piece := max(pieces, key=len, default=b""):
            found[piece] = None
        if len(found) == MOST_OPENINGS:
            break
    return tuple(found)


class Scanner:
    """Finds the lines of a log that report errors.

    Args:
        anchors: literal texts to search for in addition to the general cues.

    Attributes:
        anchors: the text of each cue that is an anchor, by the cue's number.
    """

    def __init__(self, anchors: Sequence[str]) -> None:
        cues = _cues()
        literals = tuple(
            dict.fromkeys((*cues["headers"], *cues["frames"], *cues["words"], *anchors))
        )
        wanted = frozenset(anchors)
        self._first_anchor = len({*cues["headers"], *cues["frames"], *cues["words"]})
        self.anchors = {n: text for n, text in enumerate(literals) if text in wanted}
        self._frames = frozenset(literals.index(text) for text in cues["frames"])
        self._headers = frozenset(literals.index(text) for text in cues["headers"])
        self._first_completion = len(literals)
        self._first_chatter = self._first_completion + len(cues["completion"]) + len(cues["starts"])
        literals += (*cues["completion"], *cues["starts"], *cues["chatter"])
        self._starts = tuple(text.encode() for text in cues["starts"])
        self._cues = PatternSet([literal(text) for text in literals])
        self._progress = PatternSet([pattern.encode() for pattern in cues["progress"]])

    def narrowed(self, anchors: Collection[str]) -> Scanner:
        """A scanner with only these of its anchors. It shares the compiled patterns."""
        narrow = copy(self)
        narrow.anchors = {n: text for n, text in self.anchors.items() if text in anchors}
        others = self.anchors.keys() - narrow.anchors.keys()
        narrow._cues = Subset(self._cues, {n for n in others if n >= self._first_anchor})
        return narrow

    def scan(self, log: Log) -> Scan:
        """Scans a log in one pass.

        Raises:
            InputError: the log cannot be read.
        """
        damage: list[str] = []
        # Of a compressed log the tail begins too early, so that a little more is kept.
        size = log.size
        result = self.scan_blocks(
            log.blocks(damage.append), Window(), RetainedRegions(size), Scan(expected_size=size)
        )
        self.finish(result)
        result.damage = tuple(damage)
        return result

    def finish(self, result: Scan) -> None:
        """Completes the result of a whole log with what its end shows."""
        result.sort_starts()
        tail = result.tail[result.tail.find(b"\n") + 1 :]
        start = result.size - len(tail)
        result.note_work(
            progress_lines(self._progress_lines(tail, start, result.size), bare_ranks=False)
        )

    def scan_blocks(
        self,
        blocks: Iterable[Block],
        window: Window,
        kept: RetainedRegions,
        result: Scan | None = None,
    ) -> Scan:
        """Scans blocks that continue the window, and adds to the result, if given."""
        result = result or Scan()
        # Before the first error, the start of a run does not matter; a part does not know what is before it.
        failing = bool(result.openings)
        for block in blocks:
            if not block.offset:
                result.openings = openings(block.data)
            result.note_ends(block.data, block.data)
            result.size = block.offset + len(block.data)
            if b"\0" in block.data:
                result.nuls += block.data.count(b"\0")
            hits = self.hits(block, result)
            if failing := failing or bool(hits):
                result.note_openings(block)
            if self._shows_progress(block):
                result.progress_blocks += 1
                self._note_work(block, result)
            for run in window.advance(block, hits):
                self._keep(window, run, result, kept)
        for run in window.finish():
            self._keep(window, run, result, kept)
        result.regions = kept.regions()
        result.skipped = kept.skipped
        return result

    def hits(self, block: Block, result: Scan) -> list[Hit]:
        """The lines of ``block`` with cues; reports of success are recorded in ``result``."""
        data, offset = block.data, block.offset
        hits: list[tuple[int, int, list[int]]] = []
        next_line = -1
        cues: list[int] = []
        chatters = False
        first_completion, first_chatter = self._first_completion, self._first_chatter
        # Some cues end with the line, and so does the log, if without a line end.
        lines = data if data.endswith(b"\n") else data + b"\n"
        matches = self._cues.packed_ends(lines)
        if len(matches) > DENSE_MATCHES and (dense := self._dense(result)):
            return self._selected_hits(block, matches, result, dense)
        for match in matches:
            end, cue = match >> NUMBER_BITS, match & ((1 << NUMBER_BITS) - 1)
            if first_completion <= cue < first_chatter:
                self._note_sign(block, end, result)
                continue
            if end > next_line:
                start = lines.rfind(b"\n", 0, end - 1) + 1
                next_line = lines.find(b"\n", end - 1) + 1
                cues = []
                hits.append((start, next_line - 1, cues))
            cues.append(cue)
            chatters = chatters or cue >= first_chatter
        return [
            Hit(offset + start, offset + end, tuple(cues))
            for start, end, cues in hits
            if not chatters or max(cues) < first_chatter
        ]

    def _note_sign(self, block: Block, end: int, result: Scan) -> None:
        """Records a text that reports success, or the start of a run."""
        data = block.data
        if data.endswith(self._starts, 0, end):
            result.starts.append(block.offset + end)
        elif b" failed" not in data[data.rfind(b"\n", 0, end) + 1 : data.find(b"\n", end)]:
            result.completed = block.offset + end

    def _dense(self, result: Scan) -> DenseBlocks | None:
        """What selects hits in the dense blocks of this log; None without NumPy, so that all are hits."""
        if result.dense is None:
            try:
                from epochzero.logs.dense import DenseBlocks
            except ImportError:
                return None
            result.dense = DenseBlocks(
                self._headers,
                self._frames,
                self._first_completion,
                self._first_chatter,
                result.expected_size,
            )
        return result.dense

    def _selected_hits(
        self, block: Block, matches: array[int], result: Scan, dense: DenseBlocks
    ) -> list[Hit]:
        """The hits of a block in which very many lines have cues."""
        selection = dense.select(block, matches)
        for end in selection.completions:
            self._note_sign(block, end, result)
        thinned = dense.passed_over.count > 0
        return [Hit(start, end, cues, thinned) for start, end, cues in selection.hits()]

    def _keep(self, window: Window, run: list[Hit], result: Scan, kept: RetainedRegions) -> None:
        kinds = self._kinds(window.text, run)
        key = hash(kinds)
        if kept.wants(key, run[-1].end):
            judged = len(run) if run[0].thinned else len(kinds)
            kept.add(self._region(window, run, result, judged), key)

    def _region(self, window: Window, run: list[Hit], result: Scan, kinds: int) -> Region:
        start, end = window.bounds(run)
        lead = window.first_from(start - LEAD_BYTES)
        passed = result.dense.passed_over if result.dense else None
        return Region(
            offset=start,
            line=window.line_number(start),
            text=window.text(start, end),
            hits=tuple(run),
            progress=tuple(self._progress_around(window, lead, end, indexed=run[0].thinned)),
            progress_blocks=result.progress_blocks,
            kinds=kinds,
            passed_before=passed.count_before(start) if passed else 0,
            passed_over=passed.between(start, end) if passed else frozenset(),
        )

    def _progress_around(
        self, window: Window, lead: int, end: int, *, indexed: bool
    ) -> list[tuple[int, bytes]]:
        """The lines that show progress from ``lead`` to ``end``, and the first after it.

        Args:
            indexed: many regions are in the window, so that all its lines are searched once.
        """
        if not indexed:
            return self._progress_lines(window.text(lead, end + PROGRESS_BYTES), lead, end)
        if window.progress is None:
            start = window.first_from(0)
            text = window.text(start, window.end)
            window.progress = self._progress_lines(text, start, window.end)
        first = bisect_left(window.progress, (lead,))
        last = bisect_left(window.progress, (end,))
        after = bisect_left(window.progress, (end + PROGRESS_BYTES,))
        return window.progress[first : min(last + PROGRESS_LINES, after)]

    def key(self, text: Callable[[int, int], bytes], run: Sequence[Hit]) -> int:
        """Identifies similar regions: a hash of the relevant lines without digits. It differs between
        processes.

        Args:
            text: the bytes between two offsets of the log.
            run: the hits of the region.
        """
        return hash(self._kinds(text, run))

    def _kinds(self, text: Callable[[int, int], bytes], run: Sequence[Hit]) -> frozenset[object]:
        if run[0].thinned:
            return frozenset(frozenset(hit.cues) for hit in run)
        return frozenset(
            text(hit.start, min(hit.end, hit.start + 240)).translate(None, b"0123456789")
            for hit in run
            if not self._frames.issuperset(hit.cues)
        )

    def _shows_progress(self, block: Block) -> bool:
        """Whether the first part of a block shows progress."""
        return self._progress.walk(block.data[:SAMPLE_BYTES], lambda _cue, _end: True)

    def _note_work(self, block: Block, result: Scan) -> None:
        """Records what work the first part of a block shows in its first and last lines with progress."""
        sample = block.data[:SAMPLE_BYTES]
        lines = self._progress_lines(sample, block.offset, block.offset + len(sample))
        if len(lines) > 2 * SAMPLE_LINES:
            lines = lines[:SAMPLE_LINES] + lines[-SAMPLE_LINES:]
        result.note_work(progress_lines(lines, bare_ranks=False))

    def _progress_lines(self, text: bytes, offset: int, end: int) -> list[tuple[int, bytes]]:
        """Lines that show progress in ``text``, which starts at ``offset``: all of them up to the
        offset ``end``, and `PROGRESS_LINES` after it. A redrawn line counts once for each state.
        """
        text = text.replace(b"\r", b"\n")
        lines: list[tuple[int, bytes]] = []
        last_end = -1
        after = 0

        def take(_cue: int, at: int) -> bool:
            nonlocal last_end, after
            if at > last_end:
                start = text.rfind(b"\n", 0, at) + 1
                stop = text.find(b"\n", at)
                last_end = len(text) if stop < 0 else stop
                lines.append((offset + start, text[start : min(last_end, start + 2000)]))
                after += offset + at > end
            return after >= PROGRESS_LINES

        self._progress.walk(text, take)
        return lines


class Window:
    """The part of a log that is still needed: the open run of hits and some context.

    Args:
        before: the bytes before the first block, without hits near their end.

    Attributes:
        progress: the lines of the window that show progress; None if they were not searched.
    """

    def __init__(self, before: Block = START) -> None:
        self._buffer = before.data
        self._offset = before.offset
        self._pending: list[Hit] = []
        self._counted = before.offset
        self._line = 1
        self.progress: list[tuple[int, bytes]] | None = None

    @property
    def end(self) -> int:
        return self._offset + len(self._buffer)

    def text(self, start: int, end: int) -> bytes:
        """The bytes between two offsets of the log."""
        return self._buffer[max(0, start - self._offset) : end - self._offset]

    def first_from(self, offset: int) -> int:
        """The first available offset that is not before ``offset``."""
        return max(offset, self._offset)

    def line_number(self, offset: int) -> int:
        """The number of the line at ``offset``, counted from 1 at the start of the window; offsets must not
        decrease.
        """
        if offset > self._counted:
            start, end = self._counted - self._offset, offset - self._offset
            self._line += newlines(self._buffer, start, end)
            self._counted = offset
        return self._line

    def advance(self, block: Block, hits: list[Hit]) -> Iterator[list[Hit]]:
        """Adds the next block; yields the runs of hits that cannot grow any more."""
        self.progress = None
        if not hits and not self._pending and len(block.data) >= GAP_BYTES:
            self.line_number(block.offset)
            self._buffer, self._offset = block.data, block.offset
            self._drop_before(self._first_needed())
            return
        self._drop_before(self._first_needed())
        self._buffer += block.data
        if not hits and not self._pending:
            return
        runs = list(self._runs(self._pending + hits))
        last = runs[-1]
        grows = self.end - last[-1].end <= GAP_BYTES and last[-1].end - last[0].start < REGION_BYTES
        self._pending = runs.pop() if grows else []
        yield from runs

    def finish(self) -> Iterator[list[Hit]]:
        """The run that was still open at the end of the log."""
        if self._pending:
            yield self._pending

    def bounds(self, run: list[Hit]) -> tuple[int, int]:
        """Start and end of the region around a run."""
        start = max(0, run[0].start - self._offset)
        end = min(len(self._buffer), run[-1].end - self._offset)
        first, last = start - GAP_BYTES, end + GAP_BYTES
        for _ in range(BEFORE_LINES):
            found = self._buffer.rfind(b"\n", max(0, first - 1), max(0, start - 1))
            if found < 0:
                # The buffer begins with a line that is near enough.
                start = 0 if first <= 0 else start
                break
            start = found + 1
        for _ in range(AFTER_LINES + 1):
            found = self._buffer.find(b"\n", end, last)
            if found < 0:
                end = min(len(self._buffer), last)
                break
            end = found + 1
        return self._offset + start, self._offset + end

    def _first_needed(self) -> int:
        """The first offset of the buffer that is needed after adding a block."""
        if self._pending:
            start, _ = self.bounds(self._pending)
            return start
        near = len(self._buffer) - GAP_BYTES
        if near <= 0:
            return self._offset
        line_end = self._buffer.find(b"\n", near - 1)
        return self._offset + (line_end + 1 if line_end >= 0 else len(self._buffer))

    def _drop_before(self, offset: int) -> None:
        self.line_number(offset)
        self._buffer = self._buffer[offset - self._offset :]
        self._offset = offset

    def _runs(self, hits: list[Hit]) -> Iterator[list[Hit]]:
        """Groups of hits whose surrounding lines overlap."""
        run = [hits[0]]
        for hit in hits[1:]:
            apart = self._apart(run[-1].end, hit.start)
            if apart or hit.end - run[0].start > REGION_BYTES:
                yield run
                run = []
            run.append(hit)
        yield run

    def _apart(self, end: int, start: int) -> bool:
        if start - end > GAP_BYTES:
            return True
        if start - end <= BEFORE_LINES + AFTER_LINES:
            return False  # Too few bytes for so many lines; in dense logs most hits are this near.
        lines = self._buffer.count(b"\n", end - self._offset, start - self._offset)
        return lines > BEFORE_LINES + AFTER_LINES


class RetainedRegions:
    """The retained regions: of similar regions, the first and the last.

    Args:
        size: of the log, in bytes.

    Attributes:
        skipped: number of dropped regions.
        complete: whether every kind was tracked to the end; a log may have too many kinds.
    """

    def __init__(self, size: int) -> None:
        self.skipped = 0
        self.complete = True
        self._tail_from = max(0, size - TAIL_BYTES)
        self._first: list[Region] = []
        self._last: deque[tuple[int, Region]] = deque()
        self._first_bytes = self._last_bytes = 0
        self._seen: dict[int, int] = {}

    def wants(self, key: int, end: int) -> bool:
        """Whether a region should be added: not if enough of its kind exist and the end of the log is distant.

        Args:
            key: identifies similar regions.
            end: of its last hit.
        """
        if self._seen.get(key, 0) < ALIKE or end >= self._tail_from:
            return True
        self.skipped += 1
        return False

    def add(self, region: Region, key: int) -> None:
        """Adds a region that follows all others."""
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        if seen <= ALIKE and self._first_bytes < KEPT_BYTES:
            self._first.append(region)
            self._first_bytes += cost(region)
            return
        self._last.append((key, region))
        self._last_bytes += cost(region)
        if self._last_bytes > KEPT_BYTES:
            self._thin()

    def _thin(self) -> None:
        """Retains the last regions of each kind; if that is not enough, the last of all."""
        kept: deque[tuple[int, Region]] = deque()
        counts: dict[int, int] = {}
        size = 0
        for key, region in reversed(self._last):
            counts[key] = counts.get(key, 0) + 1
            if counts[key] <= ALIKE and size < KEPT_BYTES // 2:
                kept.appendleft((key, region))
                size += cost(region)
        self.skipped += len(self._last) - len(kept)
        self._last, self._last_bytes = kept, size
        # Kinds beyond this number are not distinguished, to limit memory.
        if len(self._seen) > MOST_KINDS:
            self._seen.clear()
            self.complete = False

    def regions(self) -> list[Region]:
        """The retained regions, in order."""
        self._thin()
        kept = self._first + [region for _, region in self._last]
        return sorted(kept, key=lambda region: region.offset)


def cost(region: Region) -> int:
    """Approximate memory of a region, and time to judge it."""
    return len(region.text) + REGION_COST + HIT_COST * len(region.hits) + KIND_COST * region.kinds


def newlines(data: bytes, start: int, end: int) -> int:
    """Number of line ends between two offsets."""
    if end - start < FEW_BYTES:
        return data.count(b"\n", start, end)
    # Four times as fast, if it is installed; worth its import in logs of more than one block.
    try:
        import numpy as np
    except ImportError:
        return data.count(b"\n", start, end)
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, end - start, start) == ord("\n")))


@cache
def _cues() -> dict[str, list[str]]:
    return tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))
