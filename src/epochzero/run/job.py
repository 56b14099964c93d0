"""A whole job: its attempts one after the other, what each failed with, and whether another helps.

    attempt --(fails)--> diagnosis --> decision --(retry)--> wait --> attempt
                                          '--(stop)--> location, what a check would have said
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from epochzero.run.after import After
from epochzero.run.journal import Journal, read_journal
from epochzero.run.launchers import job_environment
from epochzero.run.model import Concluded, Decision, Ended, Output, Progress, Started
from epochzero.run.supervise import Options, run_attempt
from epochzero.run.watcher import Clock, Watcher

if TYPE_CHECKING:
    from epochzero.check import Checked, Target
    from epochzero.code import Cache
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking
    from epochzero.run.retry import Attempt, Policy

__all__ = ["Failed", "Job", "Kept", "Listener", "run_job"]

Kept = tuple[Path | None, Journal | None, int]
"""The folder and journal of an attempt, None where nothing can be kept, and its number."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is run, and what happens when it fails.

    Attributes:
        started: the first record of its first attempt.
        environment: of the job.
        policy: decides about retries.
        advise: only says what it would do; nothing is started again.
        target: the platform that a check would have been asked about; None for this machine.
        cache: of parsed code.
        options: how each attempt is run.
    """

    started: Started
    environment: Mapping[str, str]
    policy: Policy | str | Path = "auto"
    advise: bool = True
    target: Target | str | Path | None = None
    cache: Cache | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt: what is known of it as soon as the job has ended.

    Attributes:
        started, ended: its first and last record.
        folder: where it is kept.
        diagnosis: None when its output is nothing that can be read.
        decision: what the policy says; None when a person ended the job, or nothing is kept.
    """

    started: Started
    ended: Ended
    folder: Path | None
    diagnosis: Diagnosis | None = None
    decision: Decision | None = None


class Listener(Protocol):
    """Is told of a job as it goes."""

    def begins(self, attempt: int, journal: Journal | None) -> Sequence[Watcher]:
        """An attempt is about to start; answers who looks at it."""
        ...

    def failed(self, failed: Failed) -> None:
        """An attempt failed."""
        ...

    def located(self, ranking: Ranking) -> None:
        """Where in the code the bug may be."""
        ...

    def checked(self, checked: Checked) -> None:
        """What a check would have said before the start."""
        ...

    def waits(self, seconds: float) -> bool:
        """A retry waits; returns after that time whether it shall be made."""
        ...

    def ends(self, journal: Journal | None) -> None:
        """All records of an attempt are written."""
        ...


def run_job(job: Job, keep: Callable[[int], Kept], listener: Listener) -> tuple[Ended, Decision | None]:
    """Runs a job until it ends well, or until its policy or a person has had enough.

    Must be called from the main thread (`run_attempt`).

    Args:
        job: what is run.
        keep: makes the folder and journal of an attempt, the given number or a later one.
        listener: is told.

    Returns:
        How the last attempt ended, and what was decided about it.
    """
    history: list[Attempt] = []
    farthest: Progress | None = None
    number = job.started.attempt
    while True:
        folder, journal, number = keep(number)
        started = replace(job.started, attempt=number)
        ended, decision, farthest = _attempt(
            job, started, folder, journal, listener, history, farthest
        )
        if journal is not None:
            journal.close()
        listener.ends(journal)
        again = decision is not None and decision.action != "stop" and not job.advise
        if not again or decision is None or not listener.waits(decision.after):
            return ended, decision
        number += 1


def _attempt(
    job: Job,
    started: Started,
    folder: Path | None,
    journal: Journal | None,
    listener: Listener,
    history: list[Attempt],
    farthest: Progress | None,
) -> tuple[Ended, Decision | None, Progress | None]:
    """Runs one attempt; adds it to the history when it failed."""
    clock = Clock()
    started = replace(started, time=clock.now()[0])
    ended = run_attempt(
        started,
        folder,
        journal,
        environment=job_environment(
            job.environment, job=started.job, attempt=started.attempt, folder=folder
        ),
        options=job.options,
        watchers=listener.begins(started.attempt, journal),
    )
    if ended.exit_code == 0:
        return ended, None, farthest
    if folder is None or journal is None or ended.why == "not_started":
        listener.failed(Failed(started, ended, folder))
        return ended, None, farthest
    after = After(started, ended, folder, clock)
    outputs, progress = _left(journal)
    diagnosis = after.diagnosis(outputs)
    decision = None
    if diagnosis is not None:
        history.append(_facts(diagnosis, started, ended, progress, farthest))
        decision = _decided(job, history, clock)
    listener.failed(Failed(started, ended, folder, diagnosis, decision))
    last = decision is None or decision.action == "stop" or job.advise
    ranking = after.ranking(diagnosis, job.cache) if diagnosis is not None and last else None
    if ranking is not None and ranking.items:
        listener.located(ranking)
    checked = after.checked(job.target) if last and ended.why != "user" else None
    if checked is not None:
        listener.checked(checked)
    hours = started.gpus * ended.elapsed / 3600
    told = [answer.to_dict() if answer is not None else None for answer in (diagnosis, ranking, checked)]
    journal.write(Concluded(*clock.now(), *told, gpu_hours=hours))
    for record in (*after.events, *([decision] if decision else [])):
        journal.write(record)
    return ended, decision, _farther(progress, farthest)


def _decided(job: Job, history: Sequence[Attempt], clock: Clock) -> Decision:
    from epochzero.run.retry import Policy, decide, load_policy

    policy = job.policy if isinstance(job.policy, Policy) else load_policy(job.policy)
    time, elapsed = clock.now()
    return decide(policy, history, time=time, elapsed=elapsed)


def _facts(
    diagnosis: Diagnosis,
    started: Started,
    ended: Ended,
    progress: Progress | None,
    farthest: Progress | None,
) -> Attempt:
    from epochzero.run.retry import Attempt

    return Attempt.of(
        diagnosis,
        ended_by=ended.why,
        progressed=farthest is not None and _farther(progress, farthest) is not farthest,
        checkpoint=progress is not None and bool(progress.checkpoint),
        seconds=ended.elapsed,
        gpus=started.gpus,
        host=started.host,
    )


def _left(journal: Journal) -> tuple[list[Output], Progress | None]:
    """The logs of an attempt, and how far it came."""
    outputs: list[Output] = []
    progress = None
    for _, record in read_journal(journal.path):
        if isinstance(record, Output):
            outputs.append(record)
        elif isinstance(record, Progress):
            progress = record
    return outputs, progress
