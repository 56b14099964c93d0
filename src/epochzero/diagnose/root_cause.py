"""Selects the root cause among the failures of all processes.

For each process, the first failure of its last burst of failures is selected: the process survived
earlier ones. Among processes, the earliest wins, by time if times are known and by structure otherwise.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from epochzero.diagnose.catalog import SIGNALS
from epochzero.diagnose.judgment import (
    BARE_EXCEPTION,
    BURST_LINES,
    FAINT,
    NAMELESS,
    OF_PEERS,
    SIGNALLED,
    WEAK,
    JudgedEvent,
    asserts_in_kernel,
    has_exited,
    is_killed,
    is_of_launcher,
    points_elsewhere,
    reports_death,
    signalled,
    source_of,
    speaks_of_death,
)
from epochzero.diagnose.linux_signals import LinuxSignal
from epochzero.diagnose.survival import LATER_LINES, LATER_LINES_OF_RUN, stops_job
from epochzero.logs.events import QUIET, LogEvent
from epochzero.logs.source import ERROR_FILE

DAY = 86_400.0


def select_root(
    judged: tuple[JudgedEvent, ...], *, failed: bool
) -> tuple[JudgedEvent | None, tuple[JudgedEvent, ...]]:
    """The root cause, and all candidates for it."""
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
    if not candidates or (_only_weak(candidates) and any(map(signalled, judged))):
        last = _as_absent(_last_resort(judged), judged)
        reported = last and _as_launcher_saw(_as_printed_last(last, judged), judged, ())
        return reported, ()
    roots = [_root_of_process(stream) for stream in _by_process(candidates)]
    root = _as_recorded(_in_its_log(_first(_not_of_peers(roots)), candidates), candidates)
    root = _as_launcher_saw(_as_printed_last(root, judged), judged, candidates)
    return root, candidates


def _before_report(
    candidates: tuple[JudgedEvent, ...], judged: Sequence[JudgedEvent]
) -> tuple[JudgedEvent, ...]:
    """The candidates above a launcher's first report of a death, if one of them can explain it.

    The processes that the launcher then terminates can print errors of their own.
    """
    reports: dict[str, int] = {}
    for j in judged:
        if j.role == "wrapper" and is_of_launcher(j):
            reports.setdefault(j.event.log, j.event.line)
    before = tuple(j for j in candidates if j.event.line < reports.get(j.event.log, sys.maxsize))
    return before if any(j.category and j.category not in OF_PEERS for j in before) else candidates


def _stops(judged: Sequence[JudgedEvent]) -> dict[tuple[str, int], LogEvent]:
    """The scheduler's first report in each run of a log that it ends the job."""
    stops: dict[tuple[str, int], LogEvent] = {}
    for j in filter(stops_job, _by_line(judged)):
        stops.setdefault((j.event.log, j.event.starts), j.event)
    return stops


def _after_stop(later: LogEvent, stop: LogEvent | None) -> bool:
    """Whether an event follows soon after the scheduler's report of a stop: it fails because of the stop."""
    return (
        stop is not None
        and stop.line < later.line
        and stop.log_later - later.log_later < LATER_LINES
    )


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
    killed = [j for j in deaths if is_killed(j)]
    # After a task that exited by itself, the launcher terminates the others.
    exited = next((n for n, j in enumerate(reporting) if has_exited(j)), len(reporting))
    named = [
        j
        for n, j in enumerate(reporting)
        if j.category and (n < exited or j.category != "interrupted")
    ]
    spoken = [
        replace(j, category="process_crash")
        for j in _by_line(judged)
        if j.role == "cause" and speaks_of_death(j.event)
    ]
    return next(iter(killed or named or deaths or reporting or spoken[-1:]), None)


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


_RECORDER, _NO_DUMP = "CollectiveFault", re.compile(r"\bthere is no dump of\b")
"""What `epochzero.logs.flight_recorder` reports, and that it does not know of all ranks."""


def _not_of_peers(roots: Sequence[JudgedEvent]) -> Sequence[JudgedEvent]:
    """The roots without those that the death of another process explains, if one has another reason."""
    strongest = max(root.claim for root in roots)
    own = [root for root in roots if root.claim == strongest and root.category not in OF_PEERS]
    # A lost connection is what the others saw; the dumps of all ranks show which one did not come.
    recorded = [
        root
        for root in roots
        if root.event.type == _RECORDER and not _NO_DUMP.search(root.event.message)
    ]
    if recorded and not own:
        return recorded
    return (
        [root for root in roots if root in own or root.category not in OF_PEERS] if own else roots
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
            or (logged and j.event.trace != -1 and j.event.level is None and source_of(j.event) == source_of(event))
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
    if first.category in OF_PEERS and not first.event.type.endswith("BdbQuit"):
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
    known = judged.category and judged.category not in OF_PEERS
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
        if judged.category in OF_PEERS and root.category not in OF_PEERS:
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
        return later.type.rpartition(".")[2] not in SIGNALLED
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
