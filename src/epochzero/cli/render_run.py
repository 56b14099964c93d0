"""What ``epochzero run`` prints on standard error about a job."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.cli import layout
from epochzero.run.job import FailedAttempt, PlannedJob
from epochzero.run.observers.hangs import HUNG
from epochzero.run.records.model import Decision, End, JobEvent
from epochzero.run.watch.live import WHY

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.locate import Item, Ranking
    from epochzero.run.inject.outcome import InjectionOutcome
    from epochzero.run.simulate.model import Aspect


_MOST_PLACES = 3
_MOST_FINDINGS = 3
_MOST_STACK_LINES = 8


def closing(failure: FailedAttempt) -> str:
    """One line about how an attempt ended."""
    started, ended = failure.started, failure.ended
    if ended.why == "not_started":
        return (
            f"{started.command[0] or repr('')}: {_not_started(started.command[0], ended.exit_code)}"
        )
    if ended.why == WHY:
        return f"{started.name} was terminated after {layout.duration(ended.elapsed)} because of a training fault"
    if ended.why == HUNG:
        return (
            f"{started.name} was terminated after {layout.duration(ended.elapsed)} because it hung"
        )
    if _is_interruption(failure):
        return f"{started.name} was {_cancelled(ended)} after {layout.duration(ended.elapsed)}"
    if ended.signal is None:
        how = f"failed with exit code {ended.exit_code}"
    elif ended.signal == signal.SIGKILL and ended.why in ("user", "scheduler"):
        how = "did not exit when requested and was killed"
    else:
        how = f"was killed by {signal.Signals(ended.signal).name}"
    since = ", because another rank failed" if ended.why == "another_rank" else ""
    return f"{started.name} {how} after {layout.duration(ended.elapsed)}{since}"


def _not_started(program: str, code: int) -> str:
    path = Path(program)
    if path.suffix == ".py" and path.is_file():
        return f"not a command; run it with Python: epochzero run -- python {shlex.quote(program)}"
    if code != 127:
        return "cannot be executed"
    # If the script exists, the interpreter in its first line does not.
    return "its interpreter was not found" if path.is_file() else "command not found"


def failed(failure: FailedAttempt) -> Iterator[str]:
    """Why an attempt failed, and what it cost."""
    from epochzero.cli.render_diagnosis import lines

    if _is_interruption(failure):
        return
    if failure.diagnosis is not None:
        yield ""
        yield from lines(failure.diagnosis, top=2, advice=failure.decision is None)
    elif failure.folder is not None and not failure.ended.why:
        yield layout.wrapped("Diagnosis", "None: its output is not a readable log.")
    labels = {"there_now": "Now", "environment": "Subject", "unseeded": "By chance"}
    for fact, label in labels.items():
        if text := failure.evidence.get(fact):
            yield layout.wrapped(label, text)


def _is_interruption(failure: FailedAttempt) -> bool:
    """Whether a person stopped the job, and nothing else is wrong with it."""
    found = failure.diagnosis
    return failure.ended.why == "user" and (found is None or found.category == "interrupted")


def _cancelled(ended: End) -> str:
    if ended.state:
        return f"cancelled ({ended.state} in the scheduler)"
    killed = " and had to be killed" if ended.signal == signal.SIGKILL else ""
    return f"interrupted by the user{killed}"


def decided(decision: Decision, job: PlannedJob, ended: End) -> Iterator[str]:
    """Whether the job is started again, and why."""
    what = {
        "stop": "No",
        "retry": f"In {layout.duration(decision.after)}",
        "retry_elsewhere": f"On another node, in {layout.duration(decision.after)}",
    }[decision.action]
    only = ""
    if decision.action != "stop" and job.is_one_of_many:
        only = " (advice only: a single rank is not restarted; its launcher can restart all)"
    elif decision.action != "stop" and job.started.scheduler and ended.why == "scheduler":
        what, only = "In a new allocation", " (advice only: this one is over; submit the job again)"
        if ended.state == "REQUEUED":
            only = " (the scheduler has queued the job again)"
    elif decision.action != "stop" and not job.starts_again(ended):
        only = " (advice only: --retries auto would restart it)"
    avoid = f" Not on {', '.join(decision.avoid)}." if decision.avoid else ""
    saved = (
        f" Saved {decision.saved_gpu_hours:.3g} GPU hours compared with three blind retries."
        if decision.saved_gpu_hours >= 0.01
        else ""
    )
    risked = (
        f" If it fails again, it costs {decision.risked_gpu_hours:.3g} GPU hours."
        if decision.risked_gpu_hours >= 0.01
        else ""
    )
    yield layout.wrapped("Retry", f"{what}{only}. {decision.reason}{avoid}{saved}{risked}")


def hung(event: JobEvent) -> Iterator[str]:
    """A hang while it lasts: what is known of it, and each group of equal stacks once."""
    yield f"{event.text[:1].upper()}{event.text[1:]}"
    for ranks, stack in event.details.items():
        yield f"  {ranks}:"
        yield from (f"  {line}" for line in stack.splitlines()[:_MOST_STACK_LINES])


def explained(ranking: Ranking | None, checked: CheckResult | None) -> Iterator[str]:
    """Likely places of the bug, and what a check would have reported before the start."""
    places = ranking.items[:_MOST_PLACES] if ranking is not None else ()
    yield from layout.listed("Look at", map(_place, places))
    errors = [f for f in checked.findings if f.severity == "error"] if checked else []
    shown = (
        f"{finding.place.path}:{finding.place.line}  {finding.rule}: {finding.message}"
        for finding in errors[:_MOST_FINDINGS]
    )
    yield from layout.listed("Check", shown)
    if errors:
        yield layout.field("", "`epochzero check` reports this before the job starts.")


def _place(item: Item) -> str:
    reason = f"  ({item.reasons[0].text})" if item.reasons else ""
    return f"{item.path}{f' {item.unit}' if item.unit else ''}{reason}"


_VERDICTS = {
    "survived": "survived",
    "no_effect": "no effect",
    "starts_again": "terminated, for a restart",
    "lost": "not survived",
    "not_reached": "did not occur",
    "not_possible": "could not be injected",
}


def injected(outcomes: Sequence[InjectionOutcome]) -> Iterator[str]:
    """Which faults of ``--inject`` occurred, and whether the job survived each."""
    for number, outcome in enumerate(outcomes):
        head = f"{outcome.fault}: {_VERDICTS[outcome.verdict]}"
        yield layout.wrapped("Injected" if number == 0 else "", head)
        yield layout.wrapped("", outcome.text)


_COLORS = {"simulated": "green", "hinted": "yellow", "impossible": "red"}
_HEADS = {"simulated": "Simulated", "hinted": "Approximate", "impossible": "Unsupported"}


def simulated(platform: str, aspects: Sequence[Aspect]) -> Iterator[str]:
    """What a job meets of a simulated platform, before it starts."""
    yield layout.field("Platform", f"{platform}, simulated on this machine")
    width = max((len(aspect.what) for aspect in aspects), default=0)
    before = ""
    for aspect in aspects:
        label = _HEADS[aspect.how] if aspect.how != before else ""
        before = aspect.how
        yield layout.wrapped(label, f"{aspect.what:<{width}}  {aspect.text}", _COLORS[aspect.how])
    yield ""
