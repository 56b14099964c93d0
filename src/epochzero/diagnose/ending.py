"""Decides whether a job died or survived, and states the evidence."""

from __future__ import annotations

from epochzero.diagnose.facts import Facts
from epochzero.diagnose.model import End
from epochzero.diagnose.timeline import Judged, Timeline, absent_rank, ends_process, reports_death


def death(root: Judged | None, timeline: Timeline, facts: Facts, *, state_known: bool) -> End:
    """The strongest evidence that a job died.

    Args:
        root: its root cause, if the logs contain one.
        timeline: all events.
        facts: known facts in addition to the logs.
        state_known: whether the scheduler's state alone means a failure.
    """
    if root is not None and root.event.uncaught and root.event.type:
        return End(
            "died",
            "uncaught_exception",
            f"{root.event.type} was not caught: its traceback starts at the top of the program, and its process "
            "logs no later steps.",
        )
    if root is not None and root.role == "cause" and ends_process(root):
        return End("died", "crash_or_kill", f"This line reports the termination: {_quoted(root)}.")
    if state_known:
        return End("died", "scheduler_state", f"The scheduler reports the state {facts.state}.")
    if reported := next(filter(reports_death, timeline.judged), None):
        return End(
            "died",
            "reported_death",
            f"A launcher or shell reports the failure: {_quoted(reported)}.",
        )
    if facts.exit_status:
        return End("died", "exit_status", f"The job exited with status {facts.exit_status}.")
    if root is not None and root.event.cut_off:
        return End("died", "cut_off_traceback", "The log ends in the middle of a traceback.")
    return End("died", "no_later_steps", "The process logs no later steps after its failure.")


def survival(timeline: Timeline, facts: Facts) -> End:
    """The strongest evidence that a job did not die."""
    if facts.ended_well:
        return End("survived", "exit_status", "The job exited with code 0.")
    recovered = [judged for judged in timeline.judged if judged.role == "recovered"]
    if recovered:
        last = max(recovered, key=lambda judged: (judged.event.steps, judged.order))
        if last.event.steps or last.event.went_on or last.event.progress:
            return End(
                "survived", "later_steps", f"The process made progress after {_quoted(last)}."
            )
        if not last.event.ended_well:
            return End(
                "survived", "later_output", f"The process continued to write after {_quoted(last)}."
            )
        return End(
            "survived",
            "completion",
            f"The log reports successful completion after {_quoted(last)}.",
        )
    if aside := [judged for judged in timeline.judged if judged.role == "set_aside"]:
        return End(
            "survived",
            "set_aside",
            "This line was logged as a warning, skipped, retried, quoted, or raised after the work was done, and "
            f"no line reports a termination: {_quoted(aside[-1])}.",
        )
    return End("survived", "no_error", "Nothing in the log reports a failure.")


def earlier_failures(timeline: Timeline) -> tuple[str, ...]:
    """A sentence for each log in which an earlier run failed, because the diagnosis is that of the last run."""
    failed: dict[str, list[Judged]] = {}
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
        f"waited ({log}:{line}){itself}: look at what it did before, not at the other ranks.",
    )


MOST_SHOWN = 200


def _quoted(judged: Judged) -> str:
    event = judged.event
    return f"{event.log}:{event.line}"
