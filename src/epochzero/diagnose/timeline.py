"""Orders the events of all ranks: determines the root cause and its consequences.

Every event is judged separately (its signature, its role, the strength of its claim to be a cause).
For each process, the first failure of its last burst of failures is selected: the process survived
earlier ones. Among processes, the earliest wins, by time if times are known and by structure otherwise.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from epochzero.diagnose.catalog import SIGNALS, Catalog, Match
from epochzero.diagnose.linux_signals import LinuxSignal
from epochzero.diagnose.message import category_of, read_message
from epochzero.diagnose.reading import read, stated_reason
from epochzero.logs.events import QUIET, LogEvent
from epochzero.logs.progress import LOOKED_AT, LOSS_NAN, template
from epochzero.logs.scan import PROGRESS_LINES
from epochzero.logs.source import ERROR_FILE
from epochzero.logs.traceback import is_header

BURST_LINES = 60
"""Failures of one process within this number of lines belong to one burst."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class JudgedEvent:
    """An event with its judgement.

    Attributes:
        event: the event.
        match: the best signature; None if none matches.
        role: a signature's role; "earlier_run" if another run follows in the same log, "recovered" if its
            process survived, "set_aside" if it would count only with other evidence of a failure, and none
            exists.
        category: from the signature or the general rules; empty if undetermined.
        claim: strength of the event's claim to be a cause; 0 for none.
        order: position in reading order.
        ended: whether the event of an earlier run shows that a process exited.
    """

    event: LogEvent
    match: Match | None
    role: str
    category: str
    claim: int
    order: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """The root cause, other candidates, and the consequences."""

    root: JudgedEvent | None
    candidates: tuple[JudgedEvent, ...]
    judged: tuple[JudgedEvent, ...]


EXCEPTION, FATAL_LINE, ERROR_LINE, BARE_EXCEPTION, PLAIN_LINE, WEAK, FAINT = 9, 8, 7, 6, 3, 2, 1
"""Strength of an event's claim by kind of line; a FAINT claim counts
only if the job is known to have failed.
"""
NAMELESS = 4
"""Reduction of the claim of an exception that neither a signature nor the general rules recognize."""

COLUMNS = 3
"""Number of columns that make a line without a level a row of a table."""
_NO_STATEMENT = re.compile(r"^(?:usage: |[\"'{(<-]|\[(?!\d+\.\d+\] )[\"'\d{\s])")
"""Lines that state nothing, whatever they contain: help texts, configurations."""
_NO_PROSE = re.compile(r"^[\w.-]+\s*=|^\$|^(?:\S+ )?(?:pip|conda|apt|apt-get) install ")
"""Lines that state nothing unless a signature matches: code and commands."""
_STATES = re.compile(
    r"^(?:[^\n:\]>]{0,60}(?:: |\] ?|> ?|:)){0,3}(?:error|Error|ERROR|fatal|FATAL)?:? ?"
    r"(?:\w+\.){0,5}$|^\W*$"
)
"""Text before a signature's match in a line that states it rather than mentions it."""
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_SHOWN = re.compile(r"(?:(?<=[\s(\[=,:])|^)b?(['\"`])(?:.*?\1(?!\w)|.*)")
"""A text that a line shows, also one whose end is cut off. What it says is no statement of the program."""
_ADVICE = re.compile(
    r"(?i)\byou should\b|\bplease (?:make sure|consider|note|ensure)\b|\brecommended\b"
    r"|\bif (?:you|this)\b|\bthis warning\b"
)
_CONDITIONAL = re.compile(
    r"(?i)\b(?:will|would|may|might|could|can) (?:\w+ )?(?:cause|crash|fail|hang|lead|result)\b"
)
"""Words of advice, and of what has not happened: such a line reports no failure unless it is marked as one."""
_OBSERVER = re.compile(r"(?:slurmstepd|srun|wandb|\(raylet\))\b[^:\n]{0,40}: ")
"""Start of a line of a program next to the job, which need not matter to it."""
_STOPPED = re.compile(r"(?i)\bexit ?code\W{1,3}(?:-15|143)\b")
"""The end of a process that its parent asked to exit: it follows from something else, or the work was done."""

_ELSEWHERE = re.compile(
    r"(?i)\b(?:see|check|inspect|look(?: up| at)?|refer to)\b(?![^\n]*\bfor (?:\w+ )?(?:detail|info|traceback))[^\n]{0,60}"
    r"\b(?:above|below|earlier|previous|logs?|output|root cause|trace ?back|stack ?trace)\b"
    r"|\b(?:above|earlier|original|previous)\b[^\n]{0,20}\b(?:error|exception|failure)s?\b"
)
"""Words with which a message refers to another one that states the reason. What it offers for details, it states itself."""
_DEATH = re.compile(
    r"(?i)\b(?:actor|child|container|core|engine|executor|proc|process(?:es)?|rank|replica|server|shard|subprocess|worker)s?\b"
    r"[^\n]{0,60}\b(?:crashed|died|exited|is (?:already )?dead|(?:been|was|is) killed|terminated (?:abnormally|unexpectedly))\b"
    r"|^(?:\w+: )?(?:actor|child|engine|executor|process|rank|replica|server|shard|subprocess|worker)s? failed\.?$"
    r"|\bnon-?zero (?:exit|return)"
)
"""Words with which a message reports the end of another process."""


def points_elsewhere(message: str) -> bool:
    """Whether a message says that the reason is stated elsewhere: it is a consequence, whatever printed it."""
    first = message.partition("\n")[0][:LOOKED_AT]
    return _ELSEWHERE.search(first) is not None or _DEATH.search(first) is not None


_SPOKEN_OF = re.compile(
    r"^(?: \([^)\n]*\))?:? (?:is|are|was|were|means?|occurs?|happens?|refers?|indicates?|can|could|may"
    r"|might|should|would)\b"
)
"""Text after the name of an error in a sentence about it."""

_PROSE = re.compile(
    r"(?i)\b(?:because|can|could|do|does|how|if|means?|my|prints?|says?|should|that|this|what|when|why|would|you|your)\b"
)
"""Words of a sentence that speaks of an error, which no program that reports one uses."""


def _in_prose(event: LogEvent, match: Match) -> bool:
    """Whether a line only mentions the text of a signature in a sentence."""
    before = event.text[: match.start].rpartition("\n")[2].rpartition(": ")[2]
    crash = match.signature.family in _LAST_WORDS
    return crash and event.kind == "line" and _PROSE.search(before) is not None


_ERROR_LINE = re.compile(
    r"(?:^|[\s\]:|*])(?:fatal error|fatal|error|ERROR|Error|FATAL|FAILED|panic|Killed|Aborted)\b ?(?:\([^)]*\))?[:\]!]"
    r"|^(?:Segmentation fault|Aborted|Killed|Bus error|Illegal instruction)"
)


def order(
    events: Iterable[LogEvent], catalog: Catalog, *, failed: bool = False, restarts: int = 0
) -> Timeline:
    """Finds the root cause among the events of all logs.

    Args:
        events: of all logs of a job.
        catalog: the signatures.
        failed: whether the job is known to have failed, which lowers the required evidence.
        restarts: number of restarts by the launcher.
    """
    judged = tuple(_judge(event, catalog, number) for number, event in enumerate(events))
    judged = _without_recovered(_without_shutdown(_without_handlers(_without_earlier_runs(judged))))
    judged = _without_restarted(judged, restarts)
    dead = failed or any(
        reports_death(j) or (j.role == "wrapper" and j.event.uncaught) for j in judged
    )
    judged = _without_set_aside(_without_repeated(judged, dead=dead), dead=dead)
    judged = _with_reported_exit(judged)
    least = FAINT if failed else WEAK
    stopped = any(
        j.event.uncaught and j.role == "wrapper" and j.category == "interrupted" for j in judged
    )
    stops = _stops(judged)
    candidates = _before_report(
        tuple(
            j for j in judged
            if j.role == "cause" and j.claim >= least
            # No warning explains why a person asked a launcher to stop.
            and not (stopped and j.event.level in QUIET and j.category != "interrupted")
            and not _after_stop(j.event, stops.get((j.event.log, j.event.starts)))
        ),
        judged,
    )  # fmt: skip
    if not candidates or (_only_weak(candidates) and any(map(_signalled, judged))):
        last = _as_absent(_last_resort(judged), judged)
        reported = last and _as_launcher_saw(_as_printed_last(last, judged), judged, ())
        return Timeline(reported, (), judged)
    roots = [_root_of_process(stream) for stream in _by_process(candidates)]
    root = _as_recorded(_in_its_log(_first(_not_of_peers(roots)), candidates), candidates)
    root = _as_launcher_saw(_as_printed_last(root, judged), judged, candidates)
    return Timeline(root, candidates, judged)


def _without_earlier_runs(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Marks the events of all runs but the last one of each log, as one log can contain several runs.

    Nothing of a process follows its death. What follows is another process of the same run (another rank, or
    the launcher that reports the death), or another run, which prints the lines of its start again, or
    much ordinary output.
    """
    starts: dict[str, int] = {}
    deaths: dict[str, list[JudgedEvent]] = {}
    refused: set[str] = set()
    signs: dict[str, list[int]] = {}
    # The name of a log can give all its lines one rank.
    sources = Counter(log for log, *_ in {_source(j.event) for j in judged})
    for sign in judged:
        named = any(part is not None for part in _source(sign.event)[1:])
        if (named and sources[sign.event.log] > 1) or sign.role == "cascade" or _of_launcher(sign):
            insort(signs.setdefault(sign.event.log, []), sign.event.line)
    for this in sorted(judged, key=lambda j: j.event.line):
        event = this.event
        died = deaths.setdefault(event.log, [])
        near = signs.get(event.log, [])
        at = bisect_right(near, event.line + BURST_LINES)
        alone = not at or near[at - 1] < starts.get(event.log, 0)
        fails = this.role == "cause" and this.claim
        if died and (fails or _of_launcher(this)) and _starts_run(died, this, alone=alone):
            starts[event.log] = event.line
            died.clear()
        if _refuses_arguments(this.match):
            if alone and event.log in refused:
                # A script starts its programs one after the other.
                starts[event.log] = event.line
            refused.add(event.log)
        if ends_process(this) or reports_death(this):
            died.append(this)
    for this in judged:
        event = this.event
        again = event.starts and event.log_later >= FEW_LATER_LINES and sources[event.log] == 1
        if again and this.role == "cause" and this.claim >= PLAIN_LINE and event.level == "ERROR":
            starts[event.log] = max(event.line + 1, starts.get(event.log, 0))
    for log, died in deaths.items():
        last = died[-1].event if died else None
        alone = not any(line >= starts.get(log, 0) for line in signs.get(log, [])[-1:])
        if last is not None and last.log_later >= (
            LATER_LINES
            if last.starts
            else FLUSHED_LINES
            if alone and last.uncaught
            else sys.maxsize
        ):
            starts[log] = last.line + 1
    return tuple(
        replace(j, role="earlier_run", claim=0, ended=ends_process(j) or reports_death(j))
        if j.role in ("cause", "cascade", "wrapper") and j.event.line < starts.get(j.event.log, 0)
        else j
        for j in judged
    )


def _source(event: LogEvent) -> tuple[str, int | None, str | None, str | None]:
    """What wrote an event: log, rank, process and host."""
    return event.log, event.rank, event.process, event.host


def _of_launcher(judged: JudgedEvent) -> bool:
    """Whether a launcher of several processes reports a death."""
    return reports_death(judged) and bool(
        judged.match and judged.match.signature.family != "python"
    )


def _before_report(
    candidates: tuple[JudgedEvent, ...], judged: Sequence[JudgedEvent]
) -> tuple[JudgedEvent, ...]:
    """The candidates above a launcher's first report of a death, if one of them can explain it.

    The processes that the launcher then terminates can print errors of their own.
    """
    reports: dict[str, int] = {}
    for j in judged:
        if j.role == "wrapper" and _of_launcher(j):
            reports.setdefault(j.event.log, j.event.line)
    before = tuple(j for j in candidates if j.event.line < reports.get(j.event.log, sys.maxsize))
    return before if any(j.category and j.category not in _OF_PEERS for j in before) else candidates


def _stops(judged: Sequence[JudgedEvent]) -> dict[tuple[str, int], LogEvent]:
    """The scheduler's first report in each run of a log that it ends the job."""
    stops: dict[tuple[str, int], LogEvent] = {}
    for j in filter(_stops_job, _by_line(judged)):
        stops.setdefault((j.event.log, j.event.starts), j.event)
    return stops


def _after_stop(later: LogEvent, stop: LogEvent | None) -> bool:
    """Whether an event follows soon after the scheduler's report of a stop: it fails because of the stop."""
    return (
        stop is not None
        and stop.line < later.line
        and stop.log_later - later.log_later < LATER_LINES
    )


def _starts_run(deaths: Sequence[JudgedEvent], later: JudgedEvent, *, alone: bool) -> bool:
    """Whether an event belongs to another run than the deaths of processes before it.

    Args:
        alone: nothing shows that several processes write the log: one that does dies once.
    """
    if later.category in _OF_PEERS and later.category != "interrupted":
        return False
    event, death = later.event, deaths[-1]
    if any(_is_signal(d.event) and d.event.log_later == event.log_later for d in deaths):
        return False  # It reaches all processes of a terminal at once.
    if alone and event.uncaught and event.type and later.role == "cause":
        others = [d.event for d in deaths if d.event.uncaught and d.event.trace != event.trace]
        if others and event.text not in {other.text for other in others}:
            return True
    between = death.event.log_later - later.event.log_later
    if death.event.starts > later.event.starts:
        return later.role == "cause" or between >= LATER_LINES
    return later.claim >= ERROR_LINE and min(between, death.event.later) >= LATER_LINES_OF_RUN


def _last_resort(judged: Sequence[JudgedEvent]) -> JudgedEvent | None:
    """Fallback if no event claims to be a cause: the first report of a process killed by a signal,
    else a consequence with a category, else any report of a failed process, else any consequence,
    else the last error that speaks of a death, whatever program prints it.
    """
    reporting = [
        j
        for j in _by_line(judged)
        if j.role == "cascade"
        or (j.role == "wrapper" and (j.category or j.event.level not in QUIET))
    ]
    # Of several runs in one log, the last.
    reporting = [
        j
        for j in reporting
        if reporting[-1].event.log != j.event.log or _same_run(j, reporting[-1])
    ]
    deaths = [j for j in reporting if j.match and j.match.status]
    killed = [j for j in deaths if _killed(j)]
    # After a task that exited by itself, the launcher terminates the others.
    exited = next((n for n, j in enumerate(reporting) if _exited(j)), len(reporting))
    named = [
        j
        for n, j in enumerate(reporting)
        if j.category and (n < exited or j.category != "interrupted")
    ]
    spoken = [
        replace(j, category="process_crash")
        for j in _by_line(judged)
        if j.role == "cause" and _speaks_of_death(j.event)
    ]
    return next(iter(killed or named or deaths or reporting or spoken[-1:]), None)


def _speaks_of_death(event: LogEvent) -> bool:
    first = event.message.partition("\n")[0][:LOOKED_AT]
    marked = event.level in ("ERROR", "FATAL") and not _STOPPED.search(first)
    return marked and _DEATH.search(first) is not None


def _by_line(judged: Sequence[JudgedEvent]) -> list[JudgedEvent]:
    """The events in the order of their lines; they come by process within each part of a log."""
    logs = {log: n for n, log in enumerate(dict.fromkeys(j.event.log for j in judged))}
    return sorted(judged, key=lambda j: (logs[j.event.log], j.event.line))


def _same_run(judged: JudgedEvent, last: JudgedEvent) -> bool:
    event, end = judged.event, last.event
    return event.starts <= end.starts and event.log_later - end.log_later < LATER_LINES_OF_RUN


def _only_weak(candidates: Sequence[JudgedEvent]) -> bool:
    """Whether no candidate is marked as an error or known: what ends a process says more."""
    return all(judged.claim <= WEAK and judged.match is None for judged in candidates)


def _signalled(judged: JudgedEvent) -> bool:
    """Whether the event reports that a signal terminated a process."""
    return reports_death(judged) and bool(judged.match and (judged.match.status or 0) > SIGNALS)


def _killed(judged: JudgedEvent) -> bool:
    """Whether the event reports a signal that explains a death.

    Launchers terminate processes with SIGTERM, and a process aborts itself after it has printed why.
    """
    status = judged.match.status if judged.match else None
    explained = (SIGNALS + LinuxSignal.SIGTERM, SIGNALS + LinuxSignal.SIGABRT)
    return status is not None and status > SIGNALS and status not in explained


def _in_its_log(root: JudgedEvent, candidates: Sequence[JudgedEvent]) -> JudgedEvent:
    """The same failure in the log of its rank, if the root is in a launcher's record."""
    if not root.event.log.endswith(ERROR_FILE):
        return root
    for judged in candidates:
        event = judged.event
        same = event.rank == root.event.rank and event.type == root.event.type
        if same and event.message == root.event.message and not event.log.endswith(ERROR_FILE):
            return judged
    return root


def _as_recorded(root: JudgedEvent, candidates: Sequence[JudgedEvent]) -> JudgedEvent:
    """Rank and time of the failure, from the error file of a rank if its log does not contain them."""
    event = root.event
    if event.rank is not None:
        return root
    records = [
        judged.event
        for judged in candidates
        if judged.event.log.endswith(ERROR_FILE) and judged.event.rank is not None
        and (judged.event.type, judged.event.message) == (event.type, event.message)
    ]  # fmt: skip
    if not records:
        return root
    first = min(records, key=lambda record: record.time or 0.0)
    return replace(root, event=replace(event, rank=first.rank, time=event.time or first.time))


_OF_PEERS = frozenset({"communication_failure", "interrupted", "timeout"})
"""Categories of what a process reports when another one has died."""


_RECORDER, _NO_DUMP = "CollectiveFault", re.compile(r"\bthere is no dump of\b")
"""What `epochzero.logs.flight_recorder` reports, and that it does not know of all ranks."""


def _not_of_peers(roots: Sequence[JudgedEvent]) -> Sequence[JudgedEvent]:
    """The roots without those that the death of another process explains, if one has another reason."""
    strongest = max(root.claim for root in roots)
    own = [root for root in roots if root.claim == strongest and root.category not in _OF_PEERS]
    # A lost connection is what the others saw; the dumps of all ranks show which one did not come.
    recorded = [
        root
        for root in roots
        if root.event.type == _RECORDER and not _NO_DUMP.search(root.event.message)
    ]
    if recorded and not own:
        return recorded
    return (
        [root for root in roots if root in own or root.category not in _OF_PEERS] if own else roots
    )


def _as_launcher_saw(
    root: JudgedEvent, judged: Sequence[JudgedEvent], candidates: Sequence[JudgedEvent]
) -> JudgedEvent:
    """Whose failure it was, according to the launcher, if several ranks failed alike or no line names its rank.

    A program that exits by itself after an error has a status below that of signals.
    """
    reports = [
        j for j in judged
        if reports_death(j) and j.match and j.match.rank is not None
        and j.match.signature.family == "distributed" and (
            0 < (j.match.status or 0) < SIGNALS
            or (root.event.type == "KeyboardInterrupt" and j.match.status == SIGNALS + LinuxSignal.SIGINT)
        )
    ]  # fmt: skip
    named = [j.match.rank for j in reports if j.match]
    event = root.event
    listed = "".join(j.event.message for j in reports)
    if (
        event.rank is not None
        and event.rank not in named[-1:]
        and _failed_later(event.rank, listed)
    ):
        alike = (
            j for j in candidates
            if j.event.rank == named[-1] and j.claim == root.claim
            and (j.event.type, j.category) == (event.type, root.category)
        )  # fmt: skip
        return next(alike, root)
    if event.rank is None and (joined := _rank_of_process(event, judged)) is not None:
        return replace(root, event=replace(event, rank=joined))
    if event.rank is not None or (event.kind == "line" and not root.match):
        return root
    return replace(root, event=replace(event, rank=named[-1])) if named else root


def _as_printed_last(root: JudgedEvent, judged: Sequence[JudgedEvent]) -> JudgedEvent:
    """The same failure as it was printed when it ended its process, if the process had logged it before; or as
    PyTorch printed it again with the rank.
    """
    event = root.event
    logged = event.level in ("ERROR", "FATAL")
    again = (
        j.event for j in judged
        if j.event.text == event.text and j.event.line > event.line and j.event.log == event.log
        and (
            (event.rank is None is not j.event.rank)
            or (logged and j.event.trace != -1 and j.event.level is None and _source(j.event) == _source(event))
        )
    )  # fmt: skip
    return replace(root, event=next(again, event))


_KERNEL_PID = re.compile(
    r"\bKilled process (\d+)|\bXid\b[^\n]*?\bpid='?(\d+)|\[(\d+)\]: segfault\b|\btask=[^,\n]*,pid=(\d+)"
)
_PID_OF_RANK = re.compile(
    r"\brank +: (\d+)[^\n]*\n *exitcode +: -?\d+ \(pid: (\d+)\)|\blocal_rank: (\d+) \(pid: (\d+)\)"
)


def _rank_of_process(event: LogEvent, judged: Sequence[JudgedEvent]) -> int | None:
    """The rank of the process that a line of the kernel names, by the launcher's report of its exit."""
    named = _KERNEL_PID.search(event.message)
    if named is None:
        return None
    pid = next(filter(None, named.groups()))
    for report in filter(reports_death, judged):
        for rank, process, local, of_local in _PID_OF_RANK.findall(report.event.message):
            if pid in (process, of_local):
                return int(rank or local)
    return None


_LISTED = re.compile(r"\n *rank +: (\d+)[^\n]*\n *exitcode +: \d")


def _failed_later(rank: int, report: str) -> bool:
    """Whether torchrun knows that the rank that it names failed before ``rank``.

    It lists the ranks that had exited when it looked, and ends the others, which were still alive then.
    """
    exited = set(map(int, _LISTED.findall(report)))
    return _RECORDED.search(report) is not None or (bool(exited) and rank not in exited)


_RECORDED = re.compile(r"Root Cause [\s\S]*?\n *error_file *: (?!<N/A>)\S")
"""torchrun knows when a rank failed if the rank wrote an error file; else it knows only when it looked."""


def _as_absent(root: JudgedEvent | None, judged: Sequence[JudgedEvent]) -> JudgedEvent | None:
    """The root with the rank that did not arrive at a collective, if the watchdogs of all others report it."""
    absent = absent_rank(judged)
    if root is None or absent is None or root.match is None or root.match.signature.name != WAITED:
        return root
    own = next((j.event for j in judged if _reporter(j) == absent.rank), root.event)
    return replace(root, event=replace(own, rank=absent.rank))


WAITED = "nccl/watchdog-timeout"
"""The signature of the report of a rank that waited in a collective until the time limit."""


class Absent(NamedTuple):
    """A rank that did not arrive at a collective, in which all others waited.

    Attributes:
        rank: that did not arrive.
        collective, number: its operation, and its number in the sequence of collectives.
        waiting: the other ranks.
        place: log and line of the first report.
        instead: operation and number of the collective in which it waited itself; None if it reports none.
    """

    rank: int
    collective: str
    number: int
    waiting: tuple[int, ...]
    place: tuple[str, int]
    instead: tuple[str, int] | None


def absent_rank(judged: Sequence[JudgedEvent]) -> Absent | None:
    """The only rank that its watchdog does not report in the collective of all others; None if the reports do not show it.

    A launcher can count ranks that no watchdog names, so that the highest number decides only together
    with the ranks that wrote lines. A rank in a later collective has passed that of the others.
    """
    waited: dict[int, tuple[int, str]] = {}
    places: list[tuple[str, int]] = []
    for j in _by_line(judged):
        reported = _WAITING.search(j.event.shown)
        if reported and _reporter(j) is not None:
            waited[int(reported["rank"])] = (int(reported["number"]), reported["collective"])
            places.append((j.event.log, j.event.line))
    if not waited:
        return None
    known = set(waited) | {j.event.rank for j in judged if j.event.rank is not None}
    common, count = Counter(waited.values()).most_common(1)[0]
    waiting = tuple(sorted(rank for rank, at in waited.items() if at == common))
    absent = set(range(max(known) + 1)) - set(waiting)
    if len(absent) != 1 or count < 2:
        return None
    (rank,) = absent
    own = waited.get(rank)
    if own is not None and own[0] > common[0]:
        return None
    instead = None if own is None else (own[1], own[0])
    return Absent(rank, common[1], common[0], waiting, places[0], instead)


def _reporter(judged: JudgedEvent) -> int | None:
    """The rank whose watchdog reports in this event that it waited."""
    reported = _WAITING.search(judged.event.shown)
    is_report = judged.role == "cascade" and judged.match and judged.match.signature.name == WAITED
    return int(reported["rank"]) if reported and is_report else None


_WAITING = re.compile(
    r"Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<collective>\w+)"
)


def _judge(event: LogEvent, catalog: Catalog, number: int) -> JudgedEvent:
    match = match_event(event, catalog)
    if match is None and event.kind == "line" and LOSS_NAN.search(event.message[:LOOKED_AT]):
        return JudgedEvent(event, None, "cause", "loss_nan", WEAK, number)
    role = match.signature.role if match else "cause"
    category = match.signature.category if match else ""
    if match and match.signature.general:
        category = stated_reason(event.type, event.message or event.text, category)
    claim = _claim(event, match) if role == "cause" else 0
    if claim and not category:
        # What a line without any mark of an error says in quotation marks it only mentions.
        wording = event.message if claim > WEAK else _QUOTED.sub("", event.message)
        last = event.frames[-1] if event.frames else None
        place = (last.file, last.code) if last else ("", "")
        category = read(event.type, wording, *place).category
        if not category and event.level in ("ERROR", "FATAL"):
            category = category_of(read_message(wording))
        if not category:
            claim = 0 if event.kind == "line" and claim <= PLAIN_LINE else claim - NAMELESS
    if (
        match is None
        and event.kind == "exception"
        and not event.handled
        and points_elsewhere(event.text)
    ):
        role, claim = "wrapper", 0
    return JudgedEvent(event, match, role, category, claim, number)


def match_event(event: LogEvent, catalog: Catalog) -> Match | None:
    """The best signature of an event.

    A line is matched by its start: lines below it are separate events. The first line identifies an
    exception; further lines can be other output that followed, so they can add a
    cause but not make the exception harmless.
    """
    numbers = {n for anchor in event.anchors for n in catalog.anchors[anchor]}
    for text in _texts(event) if numbers else ():
        first = text.find("\n")
        for match in catalog.matches(text, event.block, numbers):
            adds = match.signature.role == "cause" and event.kind == "exception"
            if adds or first < 0 or match.start < first:
                return match
    return None


def _texts(event: LogEvent) -> tuple[str, ...]:
    """The texts that signatures are matched against: the message; else the line with its level, and for a
    native stack the whole block.
    """
    if event.kind == "line":
        return (event.text, event.shown)
    native = not is_header(event.block.split("\n", 1)[0])
    return (event.text, event.block) if native else (event.text,)


def _marked(
    judged: Iterable[JudgedEvent], role: str, applies: Callable[[JudgedEvent], bool]
) -> tuple[JudgedEvent, ...]:
    """Gives some events another role, in which they claim nothing."""
    return tuple(replace(j, role=role, claim=0) if applies(j) else j for j in judged)


_SIGNALLED = frozenset({"KeyboardInterrupt", "SignalException"})


def _is_signal(event: LogEvent) -> bool:
    return event.type.rpartition(".")[2] in _SIGNALLED


def _without_handlers(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Takes the claim from what failed while a process dealt with the signal that ended it."""
    signalled = {j.event.trace: j.order for j in reversed(judged) if _is_signal(j.event)}
    return _marked(
        judged,
        "teardown",
        lambda j: j.event.link == "context" and j.order > signalled.get(j.event.trace, len(judged)),
    )


def _without_shutdown(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Takes the claim from what fails while a server that answered requests shuts down on request, and
    from the request to shut down, with which a server usually ends.
    """

    def stops(j: JudgedEvent) -> bool:
        asked = j.role == "cascade" and j.match and j.match.status == SIGNALS + LinuxSignal.SIGTERM
        serves = "serving" in j.event.work
        return serves and bool(j.event.closing or (asked and "training" not in j.event.work))

    return _marked(judged, "teardown", stops)


def _without_repeated(judged: tuple[JudgedEvent, ...], *, dead: bool) -> tuple[JudgedEvent, ...]:
    """Sets aside what a process had reported before in the same run and survived, unless another event
    shows that a process died.
    """
    if dead:
        return judged
    alike: dict[tuple[object, ...], list[JudgedEvent]] = {}
    for this in judged:
        statement = this.role == "cause" and this.claim and this.category != "loss_nan"
        if statement and not ends_process(this) and not _loses_gpu(this):
            event = this.event
            wording = template(event.message.partition("\n")[0][:LOOKED_AT])
            key = (*_source(event), event.starts, event.type, wording)
            alike.setdefault(key, []).append(this)
    survived = {
        this.order
        for these in alike.values()
        if len(these) > LATER_LINES or (len(these) > 2 and _distance(these) >= LATER_LINES)
        for this in these
    }
    return _marked(judged, "set_aside", lambda j: j.order in survived)


def _distance(judged: Sequence[JudgedEvent]) -> int:
    """Number of ordinary lines of the log between the first and the last event."""
    return judged[0].event.log_later - judged[-1].event.log_later


def _without_restarted(judged: tuple[JudgedEvent, ...], restarts: int) -> tuple[JudgedEvent, ...]:
    """Removes the launcher's reports of failed processes after which it restarted the job, including
    the termination of other processes.
    """
    reporting = [j for j in judged if j.role in ("wrapper", "cascade") and j.event.rank is None]
    reports = [j.order for j in reporting if j.match and j.match.status]
    if not restarts or not reports:
        return judged
    last = reports[restarts] if restarts < len(reports) else len(judged)
    answered = frozenset(j.order for j in reporting if j.order < last)
    return tuple(replace(j, role="recovered") if j.order in answered else j for j in judged)


def _without_recovered(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Removes the claims of events that their process survived.

    When a launcher reports a failed process, other processes whose lines cannot be distinguished may
    continue for a moment: then only substantial progress or output counts.
    """
    passed_on = {j.event.trace for j in judged if j.event.link == "inner"}
    died = any(
        (j.role == "cascade" or (j.role == "wrapper" and _of_dead(j, passed_on)))
        and not j.event.ended_well
        for j in judged
    )
    stops = {j.event.log: j.event.log_later for j in judged if _stops_job(j)}
    kills = {j.event.log: j.event.log_later for j in judged if _kills(j)}
    sources = Counter(log for log, *_ in {_source(j.event) for j in judged})
    survived = {
        j.order
        for j in judged
        if _recovered(j, died=died)
        or _outlived(j, stops)
        or (_only_logged(j, alone=sources[j.event.log] == 1) and _outlived(j, kills))
    }
    traces = {j.event.trace for j in judged if j.order in survived} & passed_on
    return _marked(
        judged,
        "recovered",
        lambda j: (
            j.order in survived
            or (j.role == "wrapper" and j.event.trace in traces and not _of_dead(j, passed_on))
        ),
    )


def _of_dead(wrapper: JudgedEvent, passed_on: Set[int]) -> bool:
    """Whether a wrapper shows that a process died: an exception that was passed on can be handled.

    Args:
        passed_on: tracebacks that contain the one of another process.
    """
    event = wrapper.event
    return event.trace not in passed_on or event.uncaught or reports_death(wrapper)


def _stops_job(judged: JudgedEvent) -> bool:
    """Whether the scheduler reports that it ended the job, which was therefore still running."""
    if judged.match is None or judged.role != "cause" or judged.claim < ERROR_LINE:
        return False
    by_scheduler = judged.match.signature.family in ("schedulers", "slurm")
    return by_scheduler and judged.category in ("interrupted", "timeout")


def _kills(judged: JudgedEvent) -> bool:
    """Whether a process was killed or asked to stop, and was therefore still running."""
    return reports_death(judged) and bool(
        judged.match
        and judged.match.status in (SIGNALS + LinuxSignal.SIGKILL, SIGNALS + LinuxSignal.SIGTERM)
    )


def _only_logged(judged: JudgedEvent, *, alone: bool) -> bool:
    """Whether a process logged an error that does not end it by itself, and for which no other process waits.

    Args:
        alone: nothing shows that several processes write the log.
    """
    event = judged.event
    waits = judged.category in _OF_PEERS and not (alone and event.later >= LATER_LINES_OF_RUN)
    return event.kind == "line" and not (waits or _from_outside(judged) or ends_process(judged))


def _with_reported_exit(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Counts the last uncaught exception above a launcher's report of an exit with an error, if nothing else
    explains the exit: the steps after the exception are those of other ranks.
    """
    report = next(
        (j for j in judged if j.role == "wrapper" and _of_launcher(j) and _exited(j)), None
    )
    if report is None or any(j.role == "cause" and j.claim > WEAK for j in judged):
        return judged
    end = report.event
    survived = [
        j for j in judged
        if j.role == "recovered" and j.event.uncaught and j.event.log == end.log
        and j.event.line < end.line and j.event.starts == end.starts
    ]  # fmt: skip
    return tuple(
        replace(j, role="cause", claim=EXCEPTION) if j in survived[-1:] else j for j in judged
    )


def _exited(report: JudgedEvent) -> bool:
    """Whether a report names an exit status that is no signal's."""
    return bool(report.match and 0 < (report.match.status or 0) < SIGNALS)


def _outlived(judged: JudgedEvent, stops: Mapping[str, int]) -> bool:
    """Whether a job wrote much after one of its programs had failed, until it was ended from outside.

    Processes that only wait for one that has failed write nothing.

    Args:
        stops: the number of lines after the end from outside, by log.
    """
    event = judged.event
    later = event.log_later if _supervised(event) else event.later
    before = later - stops.get(event.log, sys.maxsize)
    return judged.role == "cause" and before >= LATER_LINES


def _loses_gpu(judged: JudgedEvent) -> bool:
    """Whether the process can make no further GPU call: a failed assertion in a kernel ends its context too."""
    return judged.category == "gpu_fault" or asserts_in_kernel(judged)


def asserts_in_kernel(judged: JudgedEvent) -> bool:
    """Whether an assertion failed in a kernel, which the program learns at one of its next calls."""
    return judged.match is not None and judged.match.signature.name.startswith("cuda/kernel-")


def _recovered(judged: JudgedEvent, *, died: bool) -> bool:
    """Whether the process of an event survived.

    Only later steps overrule an event that terminates a process: the summary of a tracker, an
    upload, or a shell that prints "done" do not prove a living process.
    """
    event = judged.event
    if judged.role == "cause" and _only_mentioned(judged, died=died):
        return True
    if event.serves_later and "serving" not in event.work:
        return True  # A server that did not start was started again.
    if died and judged.role == "cause" and _loses_gpu(judged):
        # A process that has lost its GPU makes no steps any more; those are of other processes.
        return False
    # A signal reaches the processes of a terminal one after the other.
    outside = _from_outside(judged) or judged.category == "interrupted"
    doubtful = (died and event.later < LATER_LINES_OF_RUN) or outside
    needed = 1
    if doubtful:
        needed = PROGRESS_LINES if event.type or outside else PROGRESS_LINES // 2
    # A program that logs a traceback as an error and continues makes steps. Results, uploads and reports of
    # completion come anyway: the code that prints them runs after any failure.
    errored = event.kind == "exception" and event.level in ("ERROR", "FATAL")
    seen = event.steps if ends_process(judged) or errored else event.progress
    continued = seen >= needed or (event.went_on and not died)
    if outside and not event.went_on:
        # A progress bar is redrawn until the signal arrives.
        continued = continued and event.log_later >= FEW_LATER_LINES
    # A program that trains to the end on NaN does not notice.
    spoiled = judged.match is None and LOSS_NAN.search(event.message[:LOOKED_AT]) is not None
    if event.ended_well and (continued or not (spoiled or ends_process(judged) or errored)):
        return judged.role in ("cause", "cascade", "wrapper")
    return judged.role == "cause" and continued


LATER_LINES, LATER_LINES_OF_EXCEPTION = 12, 100
"""Number of ordinary lines after which a process is known to have survived what it reported, if nothing
else reports a death. An epilogue, a summary or a help text is shorter; reports that quote an exception
contain up to 50 lines of text below it."""
FLUSHED_LINES = 400
"""Number of lines that cannot be output which a process had buffered (8 KiB) and wrote when it exited."""
LATER_LINES_OF_RUN = 60
"""Number of ordinary lines that a failed run does not write any more; what follows them is another run."""
FEW_LATER_LINES = 4
"""The same for a line without any mark of an error, which counts only among the last words."""


def _only_mentioned(judged: JudgedEvent, *, died: bool) -> bool:
    """Whether the process of an event that does not terminate it wrote much afterwards, or had
    finished its steps before.
    """
    event = judged.event
    if judged.category == "loss_nan":
        return False  # only a later finite loss shows that the training recovered
    supervised = _supervised(event)
    later = event.log_later if supervised and not died else event.later
    if event.kind == "line" and judged.claim <= WEAK:
        return later >= (LATER_LINES_OF_RUN if died else FEW_LATER_LINES)
    if died or ends_process(judged):
        return False
    if event.finished:
        return event.log_later > 0
    if supervised and judged.category != "process_crash":
        return later >= FEW_LATER_LINES
    if not event.type:
        return later >= LATER_LINES
    return event.level not in ("ERROR", "FATAL") and later >= LATER_LINES_OF_EXCEPTION


def _supervised(event: LogEvent) -> bool:
    """Whether a parent reports the death of the process, as Ray's and a server's does: the others need not stop by themselves."""
    return event.process is not None and "pid=" in event.process


_OBSERVERS = frozenset({"kernel", "kubernetes", "schedulers", "slurm"})
"""Families of signatures that report a process from outside: other processes may continue to write."""
_LAST_WORDS = frozenset({"native", "shell"})
"""Families of signatures whose crashes and kills are those of the job's own process, not a worker's."""


def ends_process(judged: JudgedEvent) -> bool:
    """Whether an event by itself shows that its process exited."""
    if judged.event.uncaught or judged.event.type == "Fatal Python error":
        return True
    if judged.match is None or judged.role not in ("cause", "wrapper"):
        return False
    if judged.role == "cause" and judged.event.kind == "line" and judged.claim <= FAINT:
        return False
    crashed = judged.category == "process_crash" or judged.match.signature.status > SIGNALS
    return _from_outside(judged) or (crashed and judged.match.signature.family in _LAST_WORDS)


def _refuses_arguments(match: Match | None) -> bool:
    """Whether a program printed its usage and exited, because it does not accept its arguments."""
    return match is not None and match.signature.name.startswith("python/usage-")


def _from_outside(judged: JudgedEvent) -> bool:
    """Whether the scheduler, the kernel or a driver reports the event, not the process itself."""
    if judged.match is None:
        return False
    signature = judged.match.signature
    lost_gpu = judged.category == "gpu_fault" and signature.root_cause == "infrastructure"
    return signature.family in _OBSERVERS or (lost_gpu and judged.event.kind == "line")


def reports_death(judged: JudgedEvent) -> bool:
    """Whether a launcher or a shell reports with this event that a process of the job failed."""
    return judged.role in ("cascade", "wrapper") and bool(judged.match and judged.match.status)


_ENDING = re.compile(
    r"(?i)\b(?:shutdown|ending|stopping|terminating|aborting|exiting|shutting down)\b"
)
"""Signatures with which a program announces its termination, at any level."""


def _set_aside(judged: JudgedEvent) -> bool:
    """Whether an event requires other evidence that the job died."""
    event = judged.event
    if event.set_aside:
        return True
    if event.kind != "line" or _from_outside(judged) or _ENDING.search(event.message):
        return False
    if judged.role == "cause":
        return event.level in QUIET or _only_advises(event)
    reporting = judged.role in ("cascade", "wrapper") and not reports_death(judged)
    return reporting and event.level == "WARNING"


def _only_advises(event: LogEvent) -> bool:
    """Whether a line that is not marked as an error advises, or reports what could happen."""
    if event.type or event.level == "FATAL":
        return False
    wording = event.message[:LOOKED_AT]
    if _CONDITIONAL.search(wording):
        return True
    marked = event.level == "ERROR" or _ERROR_LINE.search(wording)
    return not marked and _ADVICE.search(wording) is not None


def _without_set_aside(judged: tuple[JudgedEvent, ...], *, dead: bool) -> tuple[JudgedEvent, ...]:
    """Handles events that were logged as a warning, skipped, retried or quoted: they count only with
    other evidence that the job died, and less than any other failure.
    """
    return tuple(
        j
        if not _set_aside(j) or j.role not in ("cause", "cascade", "wrapper")
        else replace(j, claim=min(j.claim, PLAIN_LINE))
        if dead
        else replace(j, role="set_aside", claim=0)
        for j in judged
    )


def _claim(event: LogEvent, match: Match | None) -> int:
    if event.handled:
        return 0
    if event.cut_off and not event.frames:
        return WEAK + NAMELESS  # the header alone: it tells of a death, and of nothing else
    if event.kind == "exception":
        # An abort follows from what the native code printed before it.
        aborted = event.type == "Fatal Python error" and event.message == "Aborted"
        # Who calls sys.exit has logged why before.
        return ERROR_LINE if aborted or event.type == "SystemExit" else EXCEPTION
    if event.level == "FATAL":
        return FATAL_LINE
    if match is None and _OBSERVER.match(event.message):
        return FAINT
    if event.level in QUIET:
        return WEAK if match or event.type else FAINT
    if event.message.startswith("+ "):
        return 0  # a shell that traces its commands
    columns = event.message.partition("\n")[0].count(" | ") + 1
    if event.level is None and not event.type and columns >= COLUMNS:
        return FAINT  # a row of a table
    wording = event.message[:LOOKED_AT]
    if match and (_SPOKEN_OF.match(event.text[match.end :]) or _in_prose(event, match)):
        return FAINT
    if match and match.signature.family == "shell" and not match.signature.status:
        return PLAIN_LINE  # a script continues after what its shell complains about
    if match and (_refuses_arguments(match) or _STATES.match(event.text[: match.start])):
        return ERROR_LINE
    if event.type:
        return BARE_EXCEPTION
    if _STOPPED.search(wording):
        return FAINT
    if event.shown.startswith("    ") or _NO_STATEMENT.search(wording):
        return 0
    if match:
        return PLAIN_LINE
    if _NO_PROSE.search(wording):
        return 0
    if event.level == "ERROR" or _ERROR_LINE.search(_SHOWN.sub("", wording)):
        return PLAIN_LINE
    return WEAK


def _by_process(candidates: Sequence[JudgedEvent]) -> list[list[JudgedEvent]]:
    streams: dict[tuple[str, int | None, str | None], list[JudgedEvent]] = {}
    for judged in candidates:
        event = judged.event
        streams.setdefault((event.log, event.rank, event.process), []).append(judged)
    return list(streams.values())


def _root_of_process(stream: Sequence[JudgedEvent]) -> JudgedEvent:
    """The first of the strongest claims in the last burst of failures."""
    burst = _last_burst(stream)
    strongest = max(j.claim for j in burst)
    first = next(j for j in burst if j.claim == strongest)
    if first.category in _OF_PEERS and not first.event.type.endswith("BdbQuit"):
        # Several processes write here: one that failed is not survived, but waited for.
        own = [j for j in stream if j.order < first.order and _explains_peers(j)]
        if own:
            return _root_of_process(own)
    if first.category == "gpu_fault":
        # After a failed assertion in a kernel, every later call of a GPU library fails, whatever it reports.
        first = next((j for j in burst if j.order < first.order and asserts_in_kernel(j)), first)
    return _root_of_chain(first, [j for j in burst if j.event.trace == first.event.trace])


def _explains_peers(judged: JudgedEvent) -> bool:
    """Whether what peers report later can follow from a failure."""
    known = judged.category and judged.category not in _OF_PEERS
    event = judged.event
    return bool(known) and judged.claim >= BARE_EXCEPTION and not (event.set_aside or event.steps)


def _last_burst(stream: Sequence[JudgedEvent]) -> list[JudgedEvent]:
    """The failures connected to the last strong one, without normal lines in between."""
    strongest = max(j.claim for j in stream)
    last = max(n for n, j in enumerate(stream) if j.claim >= strongest - NAMELESS)
    first = last
    while first and _near(stream[first - 1], stream[first]):
        first -= 1
    while last + 1 < len(stream) and _near(stream[last], stream[last + 1]):
        last += 1
    return list(stream[first : last + 1])


def _near(first: JudgedEvent, second: JudgedEvent) -> bool:
    same_trace = first.event.trace == second.event.trace != -1
    return same_trace or second.event.line - first.event.line <= BURST_LINES


def _root_of_chain(first: JudgedEvent, chain: Sequence[JudgedEvent]) -> JudgedEvent:
    """The root within one traceback: the exception that the first one wraps, if any; else itself.

    Of an exception group, the first member counts.
    """
    root = first
    if first.event.trace == -1:
        return root
    for judged in chain[chain.index(first) + 1 :]:
        if not (_explains(root.event, judged.event) or _is_probe(root.event, judged.event)):
            break
        root = judged
    first = root
    for judged in chain[chain.index(first) + 1 :]:
        first_member = judged.event.link == "group" and root is first
        if judged.event.link != "inner" and not first_member:
            break
        if judged.category in _OF_PEERS and root.category not in _OF_PEERS:
            break
        root = judged
    return root


_PROBES = frozenset(
    {
        "ConnectionRefusedError",
        "Empty",
        "FileNotFoundError",
        "IndexError",
        "KeyError",
        "StopIteration",
    }
)
"""Exceptions with which programs detect that something is missing, to create it or to wait for it in the handler."""
_STATUS = re.compile(r"^(?:HTTP Error |Client error '|Server error ')?[1-5]\d\d\b")
"""The message of an exception that states only the status of an answer; what it means, the caller knows."""
_CLEANS = re.compile(
    r"^(?:__a?exit__|__del__|_?(?:clean|close|finali[sz]e|join|shutdown|stop|tear)\w*)$"
)
"""Functions that clean up after any failure: what fails in them is not the end of what was tried."""


def _explains(event: LogEvent, later: LogEvent) -> bool:
    """Whether an exception that was raised in place of another one states the same failure and says more: it repeats
    the message in a sentence, not behind a colon or at its end as a quotation, or it knows what a status means.
    """
    if later.link not in ("cause", "context") or points_elsewhere(later.message):
        return False
    if _STATUS.match(event.message):
        return later.type.rpartition(".")[2] not in _SIGNALLED
    wording = event.message.strip("'\" ")
    after = r"(?!\w)" if event.type == "KeyError" else r"\W+\w"
    sentence = rf"(?<!: )(?<!: ['\"])(?<!\w){re.escape(wording)}{after}"
    return (
        bool(wording)
        and later.message.strip("'\" ") != wording
        and re.search(sentence, later.message) is not None
    )


def _is_probe(event: LogEvent, later: LogEvent) -> bool:
    """Whether an exception was an expected result: its handler did other work, which failed.

    A handler that raises renames the same failure; a handler that calls functions continued.
    """
    probe = event.type.rpartition(".")[2] in _PROBES or _STATUS.match(event.message)
    if later.link != "context" or not probe or not event.frames:
        return False
    if any(_CLEANS.match(frame.function) for frame in later.frames):
        return False
    caught = event.frames[0]
    handler = [f for f in later.frames if (f.file, f.function) == (caught.file, caught.function)]
    return bool(handler) and bool(handler[-1].code) and not handler[-1].code.startswith("raise")


def _first(roots: Sequence[JudgedEvent]) -> JudgedEvent:
    """The earliest of the roots of all processes."""
    strongest = max(j.claim for j in roots)
    strong = [j for j in roots if j.claim == strongest]
    recorded = {j.event.rank: j.event.time for j in roots if j.event.log.endswith(ERROR_FILE)}
    times = [j.event.time or recorded.get(j.event.rank) for j in strong]
    logs = list(dict.fromkeys(j.event.log for j in strong))
    # Within one log the order of lines tells more than the times of lines long before.
    borrowed = len(logs) == 1 and not all(j.event.stamped for j in strong)
    if borrowed or None in times:
        return min(strong, key=lambda j: (logs.index(j.event.log), j.event.line))
    # Of day only, where some of the times lack a date.
    dated = all((time or 0.0) > DAY for time in times)
    clock = [(time or 0.0) if dated else (time or 0.0) % DAY for time in times]
    return min(zip(clock, strong, strict=True), key=lambda pair: (pair[0], pair[1].order))[1]
