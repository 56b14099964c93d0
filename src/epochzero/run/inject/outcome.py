"""The outcome of each fault: whether the job survived it, would be restarted, or was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epochzero.injected.companions import noted
from epochzero.run.inject.grammar import InjectedFault
from epochzero.run.inject.plan import COMPANIONS
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Decision, End, JobEvent, JobProgress

EVENT = "injection"
"""`JobEvent.what` of an outcome."""
Verdict = Literal["survived", "no_effect", "starts_again", "lost", "not_reached", "not_possible"]


@dataclass(frozen=True, slots=True)
class Came:
    """A fault that occurred.

    Attributes:
        elapsed: seconds since the attempt started.
        step: optimizer step; None if the fault was due at a time.
        what: what was done, as a sentence; empty for faults within the job.
        impossible: why nothing could be done; empty if something was done.
        progress: progress of the job according to its log at that time.
    """

    elapsed: float
    step: int | None
    what: str = ""
    impossible: str = ""
    progress: JobProgress | None = None


@dataclass(frozen=True, slots=True)
class InjectionOutcome:
    """The outcome of a fault in one attempt.

    Attributes:
        fault: as requested.
        verdict: survived (the job continued), no_effect (it occurred, but no part of the job met it),
            starts_again (the job ended and the retry policy would restart it), lost (it would not),
            not_reached (the job had ended before), not_possible.
        text: explanation in sentences.
        elapsed: seconds until it occurred; None if it did not.
        checkpoint: from which the job can resume; empty if its log names none.
    """

    fault: str
    verdict: Verdict
    text: str
    elapsed: float | None = None
    checkpoint: str = ""


def judged(
    faults: Sequence[InjectedFault],
    came: Sequence[Came | None],
    met: Sequence[Sequence[str]],
    *,
    folder: Path | None,
    ended: End,
    decision: Decision | None,
    progress: JobProgress | None,
) -> tuple[InjectionOutcome, ...]:
    """Return the outcomes of the faults of an attempt.

    Args:
        faults: planned faults.
        came: when each occurred; None if it did not.
        met: what parts of the job met each fault.
        folder: of the attempt; None if none is stored.
        ended: how the attempt ended.
        decision: whether the job is restarted.
        progress: progress according to the job's log.
    """
    effective = (
        c.elapsed
        for fault, c, meetings in zip(faults, came, met, strict=True)
        if c is not None and not c.impossible and (meetings or not fault.kind.inside)
    )
    last = max(effective, default=0.0)
    outcomes = []
    for fault, arrival, meetings in zip(faults, came, met, strict=True):
        impossible = _impossible(fault, folder, ended, arrival)
        if impossible:
            outcomes.append(InjectionOutcome(fault.text, "not_possible", impossible))
        elif arrival is None:
            outcomes.append(
                InjectionOutcome(fault.text, "not_reached", _not_reached(fault, ended, progress))
            )
        else:
            outcomes.append(
                _became(
                    fault,
                    arrival,
                    meetings,
                    ended,
                    decision,
                    progress,
                    is_last=arrival.elapsed == last,
                )
            )
    return tuple(outcomes)


def to_event(outcome: InjectionOutcome, clock: Clock) -> JobEvent:
    """Return the outcome as a record."""
    details = {
        "fault": outcome.fault,
        "verdict": outcome.verdict,
        "checkpoint": outcome.checkpoint,
    }
    text = f"{outcome.fault}: {outcome.text}"
    return JobEvent(
        *clock.now(), EVENT, text, details={name: word for name, word in details.items() if word}
    )


def _became(
    fault: InjectedFault,
    came: Came,
    met: Sequence[str],
    ended: End,
    decision: Decision | None,
    progress: JobProgress | None,
    *,
    is_last: bool,
) -> InjectionOutcome:
    begin = f"Injected after {came.elapsed:.0f} s"
    begin += f", in step {came.step}" if came.step is not None else ""
    effect = came.what or _meetings(met)
    begin += f": {effect}." if effect else "."
    if fault.kind.inside and not met:
        text = f"{begin} It did not affect the job: {_MEETS[fault.name]}."
        return InjectionOutcome(fault.text, "no_effect", text, came.elapsed)
    if ended.exit_code == 0 or not is_last:
        onward = "The job succeeded." if ended.exit_code == 0 else "The job continued."
        return InjectionOutcome(fault.text, "survived", f"{begin} {onward}", came.elapsed)
    later = ended.elapsed - came.elapsed
    text = f"{begin} The job exited {later:.0f} s later with code {ended.exit_code}"
    if came.progress and progress and came.progress.step is not None:
        text += f"; the last step in its log is {progress.step}"
    checkpoint = progress.checkpoint if progress is not None else ""
    start = (
        f"from {checkpoint}" if checkpoint else "from the beginning: its log names no checkpoint"
    )
    if decision is None or decision.action == "stop":
        text += ". The retry policy does not restart it."
        return InjectionOutcome(fault.text, "lost", text, came.elapsed, checkpoint)
    text += f". The retry policy would restart it {start}."
    return InjectionOutcome(fault.text, "starts_again", text, came.elapsed, checkpoint)


_MEETS = {
    "disk-full": "it wrote no file from Python in that time",
    "network-drop": "it contacted no other host from Python in that time",
    "slow-storage": "it read no file from Python in that time",
    "oom": "no forward pass followed",
}


def _meetings(met: Sequence[str]) -> str:
    if len(met) < 2:
        return "".join(met)
    return f"{met[0]}, and likewise in {len(met) - 1} other process{'es' * (len(met) > 2)}"


def _not_reached(fault: InjectedFault, ended: End, progress: JobProgress | None) -> str:
    if fault.step is None:
        return f"It was scheduled after {fault.after:g} s, but the job exited after {ended.elapsed:.1f} s."
    text = f"Step {fault.step} was not reached."
    if progress is not None and progress.step is not None:
        return f"{text} The last step in the log is {progress.step}."
    return f"{text} Steps are counted from a PyTorch optimizer or from the job's log."


def _impossible(fault: InjectedFault, folder: Path | None, ended: End, came: Came | None) -> str:
    """Return why the fault was impossible; empty if it was possible."""
    if folder is None:
        return "No fault can be injected, because the job has no writable run directory."
    if ended.why == "not_started":
        return "The job was not started."
    if came is not None and came.impossible:
        return came.impossible
    if not fault.kind.inside:
        return ""
    begun = noted(folder)
    own = {companion.call for companion in COMPANIONS}
    for failed in begun.failed:
        call, _, reason = failed.partition(" ")
        if call in own:
            return f"It could not be set up in the job's process: {reason}"
    if "python" not in begun.reached:
        return (
            f"{fault.name} is injected in the job's Python, but no Python was started, or it ignores PYTHONPATH "
            "(-I, -E, -S). Other programs support only kill-rank, host-oom and preempt."
        )
    if fault.kind.needs and fault.kind.needs not in begun.reached:
        return f"{fault.name} is injected in {fault.kind.needs}, which the job did not import."
    return ""
