"""Decides whether a job died or survived, and states the evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from epochzero.diagnose.facts import Facts
from epochzero.diagnose.judgment import JudgedEvent, ends_process, reports_death
from epochzero.diagnose.model import JobDeath
from epochzero.diagnose.root_cause import DAY, absent_rank
from epochzero.diagnose.timeline import Timeline
from epochzero.logs.prefix import split


def death(
    root: JudgedEvent | None, timeline: Timeline, facts: Facts, *, state_known: bool
) -> JobDeath:
    """The strongest evidence that a job died.

    Args:
        root: its root cause, if the logs contain one.
        timeline: all events.
        facts: known facts in addition to the logs.
        state_known: whether the scheduler's state alone means a failure.
    """
    died = partial(JobDeath, "died")
    if root is not None and root.event.uncaught and root.event.type:
        return died(
            "uncaught_exception",
            f"{root.event.type} was not caught: its traceback starts at the top of the program, and its process "
            "logs no later steps.",
        )
    if root is not None and root.role == "cause" and ends_process(root):
        return died("crash_or_kill", f"This line reports the termination: {_quoted(root)}.")
    if state_known:
        return died("scheduler_state", f"The scheduler reports the state {facts.state}.")
    if reported := next(filter(reports_death, timeline.judged), None):
        text = f"A launcher or shell reports the failure: {_quoted(reported)}."
        return died("reported_death", text)
    if facts.exit_status:
        return died("exit_status", f"The job exited with status {facts.exit_status}.")
    if root is not None and root.event.cut_off:
        return died("cut_off_traceback", "The log ends in the middle of a traceback.")
    return died("no_later_steps", "The process logs no later steps after its failure.")


def survival(timeline: Timeline, facts: Facts) -> JobDeath:
    """The strongest evidence that a job did not die."""
    survived = partial(JobDeath, "survived")
    if facts.ended_well:
        return survived("exit_status", "The job exited with code 0.")
    if recovered := [judged for judged in timeline.judged if judged.role == "recovered"]:
        last = max(recovered, key=lambda judged: (judged.event.steps, judged.order))
        place = _quoted(last)
        if last.event.steps or last.event.went_on or last.event.progress:
            return survived("later_steps", f"The process made progress after {place}.")
        if not last.event.ended_well:
            return survived("later_output", f"The process continued to write after {place}.")
        return survived("completion", f"The log reports successful completion after {place}.")
    if aside := [judged for judged in timeline.judged if judged.role == "set_aside"]:
        return survived(
            "set_aside",
            "This line was logged as a warning, skipped, retried, quoted, or raised after the work was done, and "
            f"no line reports a termination: {_quoted(aside[-1])}.",
        )
    return survived("no_error", "Nothing in the log reports a failure.")


LONG_SILENCE, USUAL_GAPS = 1800.0, 10
"""Seconds without output before a time limit after which a job is known to have hung (the longest default limit
of a collective), and so many times longer than any earlier pause.
"""
_CANCELLED_AT = re.compile(r"\bCANCELLED AT (\S+)")


def silence(root: JudgedEvent, tails: Sequence[bytes]) -> float:
    """Seconds that a job wrote nothing before its time limit ended it; 0 if it wrote, or if times are unknown.

    Args:
        root: the report of the limit.
        tails: the last bytes of each log of the job.
    """
    reported = _CANCELLED_AT.search(root.event.message)
    limit = split(f"{reported[1].replace('T', ' ')} x")[0].time if reported else root.event.time
    if limit is None or limit < DAY:
        return 0.0
    lines = b"\n".join(tails).decode("utf-8", "replace").split("\n")
    stamps = [split(line)[0].time for line in lines if line.strip()]
    times = [time for time in stamps if time is not None and DAY < time < limit - 1.0]
    pauses = [later - before for before, later in pairwise(sorted(times))]
    # What is printed without a time can be of any time.
    if len(pauses) < FEWEST_PAUSES or len(stamps) > len(times) * TIMED_SHARE:
        return 0.0
    times.sort()
    silent = limit - times[-1]
    return silent if silent >= max(LONG_SILENCE, USUAL_GAPS * max(pauses)) else 0.0


FEWEST_PAUSES = 4
"""Number of pauses between lines that show how often a job usually writes."""
TIMED_SHARE = 1.25
"""At most so many lines for each with a time: of other logs, it is unknown when the last lines were written."""


def earlier_failures(timeline: Timeline) -> tuple[str, ...]:
    """A sentence for each log in which an earlier run failed, because the diagnosis is that of the last run."""
    failed: dict[str, list[JudgedEvent]] = {}
    for judged in timeline.judged:
        continued = judged.role == "recovered" and judged.event.uncaught
        if continued or (judged.role == "earlier_run" and judged.ended):
            failed.setdefault(judged.event.log, []).append(judged)
    return tuple(
        f"{len(deaths)} failure{'s' * (len(deaths) > 1)} of earlier runs in {log}; the last one is "
        f"{_quoted(deaths[-1])}: {deaths[-1].event.shown.strip()[:MOST_SHOWN]}"
        for log, deaths in failed.items()
    )


def absence(timeline: Timeline) -> tuple[str, ...]:
    """A sentence about the rank for which all others waited in a collective, if their reports show it."""
    found = absent_rank(timeline.judged)
    if found is None:
        return ()
    waiting = ", ".join(map(str, found.waiting))
    log, line = found.place
    itself = "; it waited in {} number {}".format(*found.instead) if found.instead else ""
    return (
        f"Rank {found.rank} did not arrive at {found.collective} number {found.number}, in which ranks {waiting} "
        f"waited ({log}:{line}){itself}: inspect what that rank did before, not the other ranks.",
    )


MOST_SHOWN = 200


def _quoted(judged: JudgedEvent) -> str:
    event = judged.event
    return f"{event.log}:{event.line}"
