"""Converts the regions of a scan to events: the errors that a log reports, with place, time and process.

An event is an exception of a traceback or a single relevant line. Lines of different processes in
one file are separated by their prefixes before tracebacks are parsed.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Literal

from epochzero.logs import stacks
from epochzero.logs.announcements import last_announced
from epochzero.logs.handling import (
    answers_request,
    is_finished,
    is_quoted,
    is_refusal,
    is_set_aside,
    is_uncaught,
    runs_in_helper_thread,
)
from epochzero.logs.prefix import Prefix, split, split_envelope, strip_ansi, uses_bare_ranks
from epochzero.logs.progress import LOOKED_AT, Progress, ProgressLine, progress_lines
from epochzero.logs.scan import Region, Scan
from epochzero.logs.source import HOLE, Log
from epochzero.logs.traceback import IGNORED, Frame, Link, Traceback, is_header, parse

BLOCK_CHARS = 20_000
LONGEST_STATEMENT = 12
FEWEST_ANSWERS = 12
"""Number of answers that show a server at work; a report quotes the failed request and those around it."""
_PUT_ASIDE = (IGNORED, "Error in sys.excepthook:", "--- Logging error ---")
"""Lines above an exception that does not end a process; below a failed hook stands the one that does."""
NEAR_LINES = 4
"""Number of lines above an exception that form its context."""
ANNOUNCED_LINES = 12
"""Number of lines above an event in which the program may announce what it does."""
QUIET = frozenset({"DEBUG", "INFO", "WARNING"})
"""Levels at which nothing fatal is logged."""

_BARE_EXCEPTION = re.compile(
    r"^(?:E {3,}|\W{0,6})(?P<type>(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|\w\.error)|Exception)\b)"
    r"(?P<message>:.*|$)"
)
_CUT_OFF = re.compile(
    r"^(?P<type>[A-Za-z_][\w.]*)\s{3,}Traceback \(most recent call last\)(?P<message>)$"
)
"""The header of a notebook's traceback whose end is missing."""
_IGNORED = re.compile(r"(?i)\bignor(?:ed|ing)\b")
_SENTENCE = re.compile(r"[A-Z][a-z]* [a-z]+ [a-z]+")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d+)$')
_ANNOUNCES = re.compile(r":\s*$|\b(?:[Tt]raceback|[Ee]xception|\w+(?:Error|Exit|Interrupt))\b")
_CHILD = re.compile(r"\s*-- Process (\d+) terminated with the following error")


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An error that a log reports.

    Attributes:
        log: name of the log.
        line: 1-based number of the line in the log.
        shown: the original line, without terminal escapes.
        kind: "exception" (part of a traceback or native stack) or "line".
        type, message: of an exception, including one that a line names without a traceback; the
            message of any other line is its text without prefixes.
        frames: outermost call first.
        trace: events of one traceback share this number; -1 for lines.
        link: relation to the preceding exception of the same traceback.
        block: the surrounding lines without prefixes: the whole traceback, or neighbouring lines.
        rank, process, host, level: of the line.
        time: of the line, or of the nearest preceding line of its process with a time.
        stamped: whether the line has its own time.
        handled: the exception was ignored, or logged below the level of an error.
        uncaught: the exception was not caught and terminated its process.
        set_aside: it was logged as a warning, skipped, retried, quoted, or raised in a thread after
            the job's work was done; it counts only if other evidence shows that the job died.
        anchors: the anchors of signatures in the event's lines.
        progress: number of lines soon after the event that show progress of the same process.
        steps: number of these that advance a series of steps, which a summary does not.
        went_on: whether later parts of the log show progress.
        ended_well: whether the log reports success after the event.
        finished: whether the last counter of steps before the event had reached its total.
        later: number of ordinary lines that the process wrote after the event: lines without an error word
            that belong to no traceback. After the last error word of the log they are estimated by its size.
        log_later: number of these lines of all processes of the log.
        starts: number of lines after the event with which a run may start.
        serves_later: whether a server answers requests later in the log.
        closing: whether the program announced shortly before that it shuts down.
        work: what the same run did before the event, as in `ProgressLine`.
        announced: the phase that the last of the lines shortly before the event announces, such as "Running
            inference ..."; empty if none does.
    """

    log: str
    line: int
    shown: str
    kind: Literal["exception", "line"]
    type: str
    message: str
    frames: tuple[Frame, ...]
    trace: int
    link: Link
    block: str
    rank: int | None
    process: str | None
    host: str | None
    time: float | None
    stamped: bool
    level: str | None
    handled: bool
    uncaught: bool
    set_aside: bool
    anchors: frozenset[str]
    progress: int
    steps: int
    went_on: bool
    ended_well: bool
    finished: bool
    later: int = 0
    log_later: int = 0
    starts: int = 0
    serves_later: bool = False
    closing: bool = False
    work: frozenset[str] = frozenset()
    announced: str = ""

    @property
    def cut_off(self) -> bool:
        """Whether it is a traceback without its last line, which names the exception."""
        return self.kind == "exception" and not self.type

    @property
    def text(self) -> str:
        """The text that signatures are matched against."""
        if not self.type:
            return self.message
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(slots=True)
class _LogLine:
    offset: int
    number: int
    shown: str
    text: str
    prefix: Prefix
    cues: tuple[int, ...]
    collector: str = ""


def events_of(log: Log, scan: Scan, anchors: Mapping[int, str]) -> Iterator[LogEvent]:
    """The events of one log, in the order of its lines.

    Args:
        log: the scanned log.
        scan: the result of the scan; the work that its regions show is added.
        anchors: text of each cue that is an anchor, by number.
    """
    trace = 0
    bare_ranks = any(uses_bare_ranks(_whole_lines(part)) for part in (scan.head, scan.tail))
    written = _Written()
    found: list[tuple[LogEvent, _Source, int, int]] = []
    passed = 0
    for region in scan.regions:
        written.skip_to(region.line, region.passed_before - passed)
        passed = region.passed_before + len(region.passed_over)
        lines = _lines(region, bare_ranks)
        progress = progress_lines(region.progress, bare_ranks=bare_ranks)
        scan.note_work(progress)
        went_on = scan.progress_blocks > region.progress_blocks
        closing = min((n for n, line in enumerate(lines) if _closes(line)), default=len(lines))
        closing_line = lines[closing].number if closing < len(lines) else sys.maxsize
        events: list[tuple[_Source, LogEvent]] = []
        ordinary: dict[_Source, list[int]] = {}
        for source, stream in _streams(lines):
            reader = _StreamReader(log, stream, anchors, progress, went_on, scan, trace)
            events += [
                (source, replace(event, closing=True) if event.line > closing_line else event)
                for event in reader.events()
            ]
            ordinary[source] = reader.ordinary
            trace = reader.trace
        found += [
            (event, source, *counts) for event, source, counts in written.add(events, ordinary)
        ]
        written.next_line = region.line + region.text.count(b"\n")
    if scan.regions:
        last = scan.regions[-1]
        read = last.offset + len(last.text)
        last_line = written.next_line + (scan.size - read) * written.next_line // max(1, read)
        written.skip_to(last_line, scan.passed_over - passed)
    for event, source, before, all_before in found:
        log_later = written.all_lines() - all_before
        later = max(0, written.lines(source) - before)
        yield replace(event, later=later, log_later=log_later) if log_later else event


_CLOSES = re.compile(
    r"(?i)\bshutting down\b|\bshutdown (?:triggered|requested|initiated)\b|\bworker exiting\b"
)


def _closes(line: _LogLine) -> bool:
    """Whether a program announces that it shuts down on request, not because of an error."""
    return line.prefix.level in (None, "INFO") and _CLOSES.search(line.text) is not None


_Source = tuple[int | str | None, ...]
"""Rank, process and host of a line."""
_UNNAMED: _Source = (None, None, None)


class _Written:
    """Number of ordinary lines that each source has written so far.

    Lines between the regions contain no error word and are not read. They count for the lines
    without a source, or for the only source of the log.

    Attributes:
        next_line: number of the first line after the last region.
    """

    def __init__(self) -> None:
        self.next_line = 1
        self._lines: Counter[_Source] = Counter()
        self._unread = 0

    def skip_to(self, line: int, passed_over: int) -> None:
        """Counts the lines up to the next region, without those with cues that were passed over."""
        self._unread += max(0, line - self.next_line - passed_over)

    def add(
        self, events: list[tuple[_Source, LogEvent]], ordinary: Mapping[_Source, list[int]]
    ) -> list[tuple[LogEvent, _Source, tuple[int, int]]]:
        """Adds the ordinary lines of a region.

        Returns:
            The events, each with the number of lines before it: of its source, and of all.
        """
        together = sorted(chain.from_iterable(ordinary.values()))
        all_before = self.all_lines()
        before = {source: self.lines(source) for source in ordinary}
        counted = [
            (
                event,
                source,
                (
                    before[source] + bisect_left(ordinary[source], event.line),
                    all_before + bisect_left(together, event.line),
                ),
            )
            for source, event in events
        ]
        for source, numbers in ordinary.items():
            self._lines[source] += len(numbers)
        return counted

    def all_lines(self) -> int:
        return sum(self._lines.values()) + self._unread

    def lines(self, source: _Source) -> int:
        """Lines of one source so far."""
        read = self._lines[source]
        alone = source == _UNNAMED or len(self._lines) == 1
        return read + self._unread if alone else read


def _whole_lines(part: bytes) -> bytes:
    """A part of a log without the lines at its ends, which may be incomplete."""
    return part[part.find(b"\n") + 1 : part.rfind(b"\n") + 1]


_PASSED_OVER = (-1,)
"""The cues of a line that has cues but is not a hit: no event, and no ordinary line."""


def _lines(region: Region, bare_ranks: bool) -> list[_LogLine]:
    lines: list[_LogLine] = []
    hits = iter(region.hits)
    hit = next(hits, None)
    position = region.offset
    plain = not any(mark in region.text for mark in (b"\r", b"\x1b", b"\0", b"%|", *_DEATHS))
    for number, raw in enumerate(region.text.split(b"\n"), region.line):
        end = position + len(raw)
        cues: tuple[int, ...] = _PASSED_OVER if position in region.passed_over else ()
        while hit is not None and hit.start <= end:
            cues += hit.cues
            hit = next(hits, None)
        text = _cut(raw).decode("utf-8", "replace")
        for piece in (text,) if plain else _shown(text):
            prefix, rest = split(piece, bare_ranks=bare_ranks)
            if record := split_envelope(rest):
                own = prefix.over(record[0])
                for inner in record[1]:
                    inside, text = split(inner)
                    lines.append(_LogLine(position, number, inner, text, inside.over(own), cues))
            else:
                lines.append(_LogLine(position, number, piece, rest, prefix, cues))
        position = end + 1
    return _without_collector(lines)


_TRACEBACK = "Traceback (most recent call last):"
_LONGEST_COLLECTOR = 120
_SOURCE_LINE = re.compile(r"\w\.(?:py|cc|cpp|cu|h):\d+\b")
"""The line of code that wrote a record, which any process can execute."""
_NUMBERED = re.compile(r"(?i)\b(?:rank|worker|replica)[ _:=-]{0,2}(\d{1,5})\b")


def _without_collector(lines: list[_LogLine]) -> list[_LogLine]:
    """The lines without what an unknown collector put in front of each of its source's lines.

    A traceback shows it: the lines below its header begin with the same text as the header.
    """
    collectors = set()
    for at, line in enumerate(lines):
        if not line.cues or _TRACEBACK not in line.text:
            continue
        front = line.text[: line.text.index(_TRACEBACK)]
        frame = front + '  File "'
        if front.strip() and len(front) <= _LONGEST_COLLECTOR and any(
            below.text.startswith(frame) for below in lines[at + 1 : at + 20]
        ):  # fmt: skip
            collectors.add(front)
    for line in lines if collectors else ():
        if front := next(filter(line.text.startswith, collectors), ""):
            rank = _NUMBERED.search(front)
            process = None if _SOURCE_LINE.search(front) else front.strip()
            source = Prefix(rank=int(rank[1]) if rank else None, process=process)
            line.text = line.text.removeprefix(front)
            line.collector = front
            line.prefix = line.prefix.over(source)
    return lines


LONGEST_LINE = 10_000


_DEATHS = (b"Killed", b"Terminated", b"Aborted", b"Segmentation", b"Bus error")


def _cut(raw: bytes) -> bytes:
    """A line without its middle, if it is too long to read."""
    half = LONGEST_LINE // 2
    return raw if len(raw) <= LONGEST_LINE else raw[:half] + b" [...] " + raw[-half:]


MOST_PIECES = 200
_AFTER_BAR = re.compile(r"(\d\d<[^\]\r\n]{0,200}\])(?=[^\s,])")
"""The end of a progress bar that other output follows without a line end between."""
_LAST_WORD = re.compile(
    r"(?<=[\d\])}%s])(?=(?:Killed|Terminated|Aborted|Segmentation fault|Bus error)(?: \(core dumped\))?\s*$)"
)
"""A shell's report of a death behind an unfinished line."""
_HOLE = re.compile(HOLE.pattern.decode())


def _shown(text: str) -> list[str]:
    """The pieces of a line that a terminal would show: without escapes, and split at carriage returns
    that overwrite it; of a progress bar, only the last state. A hole separates pieces too, because it
    replaced line ends.
    """
    text = _HOLE.sub("\r", strip_ansi(text)).replace("\0", "")
    if "%|" in text:
        text = _AFTER_BAR.sub("\\1\r", text)
    text = _LAST_WORD.sub("\r", text)
    if "\r" not in text:
        return [text]
    pieces = [piece for piece in text.split("\r") if piece.strip()]
    complete = [piece for piece in pieces if "%|" not in piece] or pieces[-1:]
    return complete[-MOST_PIECES:] or [""]


def _streams(lines: list[_LogLine]) -> list[tuple[_Source, list[_LogLine]]]:
    """The lines of each process separately, with their source.

    Lines without a process remain together: if several processes write without prefixes, only their order
    is known.
    """
    if all(line.prefix[:3] == (None, None, None) for line in lines):
        return [(_UNNAMED, lines)]
    streams: dict[_Source, list[_LogLine]] = {}
    for line in lines:
        prefix = line.prefix
        streams.setdefault((prefix.rank, prefix.process, prefix.host), []).append(line)
    return list(streams.items())


_NO_STATEMENT = re.compile(r"\s|frame #\d|wandb: |Exception raised from|-{4,}$|={4,}$")
"""Start of lines that belong to a report of an error or to the teardown, and so prove no life."""


class _StreamReader:
    """Parses the lines of one process in one region.

    Attributes:
        ordinary: numbers of the ordinary lines read so far.
        trace: number of the last traceback.
    """

    def __init__(
        self,
        log: Log,
        lines: list[_LogLine],
        anchors: Mapping[int, str],
        progress: list[ProgressLine],
        went_on: bool,
        scan: Scan,
        trace: int,
    ) -> None:
        self.log = log
        self.lines = lines
        self.texts = [line.text for line in lines]
        # A logger can write what is in front of a record again on each of its lines.
        self.breaks = [
            (line.prefix.time is not None or line.prefix.level is not None)
            and not (line.collector and line.collector == above.collector)
            for above, line in zip([lines[-1], *lines], lines, strict=False)
        ]
        self.times = list(accumulate((line.prefix.time for line in lines), _latest))
        self.anchors = anchors
        # Of one process all lines have one rank, or none.
        own = lines[0].prefix
        self.progress = Progress(
            [
                line
                for line in progress
                if line.rank in (None, own.rank) and line.process in (None, own.process)
            ]
        )
        self.last_record = max((n for n, begins in enumerate(self.breaks) if begins), default=-1)
        self.went_on = went_on
        self.completed = scan.completed
        self.scan = scan
        self.trace = trace
        self.ordinary: list[int] = []
        stamped = sum(self.breaks)
        # Where (nearly) every line carries a time or a level, only another level starts a new record.
        if stamped > 0.8 * len(lines):
            levels = [line.prefix.level for line in lines]
            self.breaks = [
                None is not level != before
                for before, level in zip([levels[0], *levels], levels, strict=False)
            ]

    def events(self) -> Iterator[LogEvent]:
        at = 0
        while at < len(self.lines):
            found = self._stack(at)
            if found is None:
                if self._tells(at):
                    yield self._line_event(at)
                elif self._is_ordinary(at):
                    self.ordinary.append(self.lines[at].number)
                at += 1
                continue
            yield from self._exceptions(found)
            at = max(found.end, at + 1)

    def _is_ordinary(self, at: int) -> bool:
        text = self.texts[at]
        return bool(text) and not self.lines[at].cues and not _NO_STATEMENT.match(text)

    def _stack(self, at: int) -> Traceback | None:
        text = self.texts[at]
        if self.lines[at].cues in ((), _PASSED_OVER):
            return None
        if is_header(text):
            return parse(self.texts, at, self.breaks)
        return stacks.parse(self.texts, at)

    def _tells(self, at: int) -> bool:
        if self.lines[at].cues in ((), _PASSED_OVER):
            return False
        return (
            not self.texts[at]
            .lstrip()
            .startswith(('File "', "at ", "---->", "Traceback (most recent"))
        )

    def _exceptions(self, found: Traceback) -> Iterator[LogEvent]:
        self.trace += 1
        block = "\n".join(self.texts[found.start : found.end])[:BLOCK_CHARS]
        handled = self._handled(found)
        level = self._logged_at(found)
        uncaught = not handled and (
            self._ends_hydra(found) or any(is_uncaught(raised.frames) for raised in found.raised)
        )
        set_aside = self._exception_set_aside(found, uncaught=uncaught)
        bounds = [*(raised.at for raised in found.raised[1:]), found.end]
        begins = [found.start, *(raised.at for raised in found.raised[1:])]
        for raised, begin, stop in zip(found.raised, begins, bounds, strict=True):
            yield self._event(
                raised.at,
                found.end,
                begin=found.start,
                child=self._child(found.start, raised.at),
                kind="exception",
                type=raised.type,
                message=raised.message,
                frames=raised.frames,
                trace=self.trace,
                link=raised.link,
                block=block,
                level=level,
                handled=handled,
                uncaught=uncaught and not set_aside,
                set_aside=set_aside,
                anchors=self._anchors(begin, max(stop, raised.at + 1)),
            )

    def _line_event(self, at: int) -> LogEvent:
        near = self.texts[max(0, at - 3) : at + 4]
        text = self.texts[at].strip()
        bare = _BARE_EXCEPTION.match(text) or _CUT_OFF.match(text)
        known = bool(self._anchors(at, at + 1))
        end = self._end_of_statement(at, indented=bare is None and not known)
        first = bare["message"].strip(":*` ") if bare else text
        return self._event(
            at,
            at + 1,
            kind="line",
            type=bare["type"] if bare else "",
            message="\n".join([first, *self.texts[at + 1 : end]]).strip(),
            frames=self._place_before(at) if bare else (),
            trace=-1,
            link="",
            block="\n".join(near)[:BLOCK_CHARS],
            level=self._level(at, plain=bare is None and not known),
            handled=bare is not None and self._ignored(at),
            uncaught=False,
            set_aside=is_quoted(text) or is_set_aside(text),
            anchors=self._anchors(at, end),
        )

    def _level(self, at: int, *, plain: bool) -> str | None:
        """The level of a line: its own, or that of the warning that it continues.

        Args:
            plain: nothing marks the line as an error, so that a sentence need not be indented to continue a record.
        """
        lead = at - 1
        while lead > 0 and not self.breaks[lead] and self.texts[lead][:1].isspace():
            lead -= 1
        sentence = plain and lead == at - 1 and _SENTENCE.match(self.texts[at])
        continues = self.texts[at][:1].isspace() or sentence
        own = self.lines[at].prefix.level
        if own is None and not self.breaks[at] and lead >= 0 and continues:
            level = self.lines[lead].prefix.level
            return "WARNING" if level == "WARNING" else None
        return own

    def _place_before(self, at: int) -> tuple[Frame, ...]:
        """The location that Python prints above a syntax error, without a header."""
        for text in reversed(self.texts[max(0, at - 5) : at]):
            if found := _FRAME.match(text):
                return (Frame(found["file"], int(found["line"]), ""),)
        return ()

    def _end_of_statement(self, at: int, *, indented: bool) -> int:
        """The end of the lines that continue line ``at``: up to a blank line or a new record; after a
        line that is not an exception, only ``indented`` ones.
        """
        end = at + 1
        while end < min(len(self.lines), at + LONGEST_STATEMENT):
            text = self.texts[end]
            if not text.strip() or self.breaks[end] or is_header(text):
                break
            if (indented and not text[0].isspace()) or text.lstrip().startswith(('File "', "at ")):
                break
            end += 1
        return end

    def _handled(self, found: Traceback) -> bool:
        """Whether the line before a traceback reports that the exception was handled.

        A program that logs a traceback as a warning continued afterwards. A traceback from the top of the
        program belongs to a warning only if the warning announces it: Python prints it below any line.
        """
        if not found.start:
            return False
        lead = self.lines[found.start - 1]
        if lead.text.startswith(_PUT_ASIDE):
            return True
        from_top = any(is_uncaught(raised.frames) for raised in found.raised)
        belongs = not from_top or _ANNOUNCES.search(lead.text) is not None
        return lead.prefix.level == "WARNING" and belongs and found.end <= self.last_record

    def _ends_hydra(self, found: Traceback) -> bool:
        """Whether Hydra printed a traceback, which then exits; it leaves out its own frames."""
        lead = self.lines[found.start - 1].text if found.start else ""
        return lead.startswith("Error executing job with overrides: ")

    def _logged_at(self, found: Traceback) -> str | None:
        """The level of a traceback: its own, or that of the error record that it is part of."""
        own = self.lines[found.start].prefix.level
        lead = self.lines[found.start - 1].prefix.level if found.start else None
        return lead if own is None and lead in ("ERROR", "FATAL") else own

    def _exception_set_aside(self, found: Traceback, *, uncaught: bool) -> bool:
        """Whether a traceback requires other evidence that its process died."""
        header = self.lines[found.start]
        lead = self.lines[found.start - 1] if found.start else None
        if header.prefix.level == "WARNING" or is_quoted(header.text):
            return True
        if lead is not None and is_quoted(lead.text):
            return True
        if any(answers_request(raised.frames) for raised in found.raised):
            return self._serves()
        if any(runs_in_helper_thread(raised.frames) for raised in found.raised):
            return self._finished_before(found.start)
        if uncaught:
            return False
        # Without a blank line between, what is printed next looks like part of the message.
        last = found.raised[-1]
        below = range(last.at + 1, len(self.texts))
        following = next((self.texts[at] for at in below if self.texts[at].strip()), "")
        message = last.message.split("\n", 1)[0]
        failed = f"{message} {' '.join(f'{f.function} {f.code}' for f in last.frames[-2:])}"
        if is_set_aside(following, failed) or (is_refusal(following) and self._serves()):
            return True
        return lead is not None and is_set_aside(lead.text)

    def _serves(self) -> bool:
        """Whether a server answers requests in this log, so that the failure of one does not end it."""
        return len(self.scan.work.get("serving", ())) >= FEWEST_ANSWERS

    def _finished_before(self, at: int) -> bool:
        """Whether the log reports above line ``at`` that the work is done."""
        near = self.texts[max(0, at - NEAR_LINES) : at]
        return 0 <= self.completed < self.lines[at].offset or any(map(is_finished, near))

    def _ignored(self, at: int) -> bool:
        """Whether the record before a logged exception reports that it is ignored."""
        lead, line = self.lines[max(0, at - 1)], self.lines[at]
        logged = line.prefix.level is not None and line.prefix.level == lead.prefix.level
        return logged and _IGNORED.search(lead.text) is not None

    def _anchors(self, start: int, stop: int) -> frozenset[str]:
        return frozenset(
            self.anchors[cue]
            for line in self.lines[start:stop]
            for cue in line.cues
            if cue in self.anchors
        )

    def _child(self, start: int, at: int) -> int | None:
        """The number of the spawned process whose traceback a parent prints."""
        for text in reversed(self.texts[start:at]):
            if found := _CHILD.match(text):
                return int(found[1])
        return None

    def _event(
        self,
        at: int,
        end: int,
        begin: int | None = None,
        child: int | None = None,
        **fields: object,
    ) -> LogEvent:
        line = self.lines[at]
        begin = at if begin is None else begin
        prefix = line.prefix
        time = prefix.time if prefix.time is not None else self.log.time
        starts = self.scan.starts
        serving = self.scan.work.get("serving", [])
        before = bisect_left(starts, line.offset)
        run = starts[before - 1] if before else 0
        # The last line that belongs to the event.
        offset = self.lines[min(end, len(self.lines)) - 1].offset
        return LogEvent(
            log=self.log.name,
            line=line.number,
            shown=line.shown.rstrip(),
            rank=next(
                (
                    r
                    for r in (child, prefix.rank, self.log.rank, _in_group(line.text))
                    if r is not None
                ),
                None,
            ),
            process=prefix.process,
            host=prefix.host,
            time=self.times[at] if time is None else time,
            stamped=time is not None,
            progress=self.progress.signs_after(offset),
            steps=self.progress.steps_after(offset),
            went_on=self.went_on,
            ended_well=self.completed > line.offset + len(line.shown),
            finished=self.progress.finished_before(line.offset),
            serves_later=bool(serving) and serving[-1] > offset,
            starts=len(starts) - bisect_right(starts, line.offset + len(line.shown)),
            work=frozenset(
                work
                for work, offsets in self.scan.work.items()
                if bisect_left(offsets, run) < bisect_left(offsets, line.offset)
            ),
            announced=last_announced(self.texts[max(0, begin - ANNOUNCED_LINES) : begin]),
            **fields,  # type: ignore[arg-type]  # the two callers give the remaining fields
        )


_IN_GROUP = re.compile(r"\[PG ID \d[^\]\n]{0,80} Rank (\d{1,6})\]")


def _in_group(text: str) -> int | None:
    """The rank that a message of a process group names as its own."""
    found = _IN_GROUP.search(text[:LOOKED_AT])
    return int(found[1]) if found else None


def _latest(before: float | None, now: float | None) -> float | None:
    return before if now is None else now
