"""Which failures a process or a job survived, repeated or only mentioned: these are no causes."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from epochzero.diagnose.catalog import SIGNALS
from epochzero.diagnose.judgment import (
    BURST_LINES,
    ERROR_LINE,
    EXCEPTION,
    OF_PEERS,
    PLAIN_LINE,
    WEAK,
    JudgedEvent,
    asserts_in_kernel,
    ends_process,
    has_exited,
    is_from_outside,
    is_of_launcher,
    is_signal,
    only_advises,
    refuses_arguments,
    reports_death,
    source_of,
)
from epochzero.diagnose.linux_signals import LinuxSignal
from epochzero.logs.events import QUIET, LogEvent
from epochzero.logs.progress import LOOKED_AT, LOSS_NAN, template
from epochzero.logs.scan import PROGRESS_LINES


def without_survived(
    judged: tuple[JudgedEvent, ...], *, failed: bool, restarts: int
) -> tuple[JudgedEvent, ...]:
    """Takes the claim from all failures that the job survived, repeats or only mentions."""
    judged = _without_recovered(_without_shutdown(_without_handlers(_without_earlier_runs(judged))))
    judged = _without_restarted(judged, restarts)
    dead = failed or any(
        reports_death(j) or (j.role == "wrapper" and j.event.uncaught) for j in judged
    )
    judged = _without_set_aside(_without_repeated(judged, dead=dead), dead=dead)
    return _with_reported_exit(judged)


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
    sources = Counter(log for log, *_ in {source_of(j.event) for j in judged})
    for sign in judged:
        named = any(part is not None for part in source_of(sign.event)[1:])
        if (
            (named and sources[sign.event.log] > 1)
            or sign.role == "cascade"
            or is_of_launcher(sign)
        ):
            insort(signs.setdefault(sign.event.log, []), sign.event.line)
    for this in sorted(judged, key=lambda j: j.event.line):
        event = this.event
        died = deaths.setdefault(event.log, [])
        near = signs.get(event.log, [])
        at = bisect_right(near, event.line + BURST_LINES)
        alone = not at or near[at - 1] < starts.get(event.log, 0)
        fails = this.role == "cause" and this.claim
        if died and (fails or is_of_launcher(this)) and _starts_run(died, this, alone=alone):
            starts[event.log] = event.line
            died.clear()
        if refuses_arguments(this.match):
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


def _starts_run(deaths: Sequence[JudgedEvent], later: JudgedEvent, *, alone: bool) -> bool:
    """Whether an event belongs to another run than the deaths of processes before it.

    Args:
        alone: nothing shows that several processes write the log: one that does dies once.
    """
    if later.category in OF_PEERS and later.category != "interrupted":
        return False
    event, death = later.event, deaths[-1]
    if any(is_signal(d.event) and d.event.log_later == event.log_later for d in deaths):
        return False  # It reaches all processes of a terminal at once.
    if alone and event.uncaught and event.type and later.role == "cause":
        others = [d.event for d in deaths if d.event.uncaught and d.event.trace != event.trace]
        if others and event.text not in {other.text for other in others}:
            return True
    between = death.event.log_later - later.event.log_later
    if death.event.starts > later.event.starts:
        return later.role == "cause" or between >= LATER_LINES
    return later.claim >= ERROR_LINE and min(between, death.event.later) >= LATER_LINES_OF_RUN


def _marked(
    judged: Iterable[JudgedEvent], role: str, applies: Callable[[JudgedEvent], bool]
) -> tuple[JudgedEvent, ...]:
    """Gives some events another role, in which they claim nothing."""
    return tuple(replace(j, role=role, claim=0) if applies(j) else j for j in judged)


def _without_handlers(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Takes the claim from what failed while a process dealt with the signal that ended it."""
    signalled = {j.event.trace: j.order for j in reversed(judged) if is_signal(j.event)}
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
            key = (*source_of(event), event.starts, event.type, wording)
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
    stops = {j.event.log: j.event.log_later for j in judged if stops_job(j)}
    kills = {j.event.log: j.event.log_later for j in judged if _kills(j)}
    sources = Counter(log for log, *_ in {source_of(j.event) for j in judged})
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


def stops_job(judged: JudgedEvent) -> bool:
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
    waits = judged.category in OF_PEERS and not (alone and event.later >= LATER_LINES_OF_RUN)
    return event.kind == "line" and not (waits or is_from_outside(judged) or ends_process(judged))


def _with_reported_exit(judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Counts the last uncaught exception above a launcher's report of an exit with an error, if nothing else
    explains the exit: the steps after the exception are those of other ranks.
    """
    report = next(
        (j for j in judged if j.role == "wrapper" and is_of_launcher(j) and has_exited(j)), None
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
    outside = is_from_outside(judged) or judged.category == "interrupted"
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


_ENDING = re.compile(
    r"(?i)\b(?:shutdown|ending|stopping|terminating|aborting|exiting|shutting down)\b"
)
"""Signatures with which a program announces its termination, at any level."""


def _set_aside(judged: JudgedEvent) -> bool:
    """Whether an event requires other evidence that the job died."""
    event = judged.event
    if event.set_aside:
        return True
    if event.kind != "line" or is_from_outside(judged) or _ENDING.search(event.message):
        return False
    if judged.role == "cause":
        return event.level in QUIET or only_advises(event)
    reporting = judged.role in ("cascade", "wrapper") and not reports_death(judged)
    return reporting and event.level == "WARNING"


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
