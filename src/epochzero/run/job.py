"""A whole job: its attempts one after the other, what each failed with, and whether another helps.

attempt --(fails)--> diagnosis --> decision --(retry)--> wait --> attempt
                                      '--(stop)--> location, what a check would have said
"""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from epochzero.errors import InputError
from epochzero.run.after import After, Preparation
from epochzero.run.hang import RankWatcher, StallWatcher
from epochzero.run.identity import attempt_folder, name_of
from epochzero.run.journal import Journal, read_journal
from epochzero.run.launchers import Launch, job_environment, launch_of
from epochzero.run.model import (
    Concluded,
    Decision,
    Ended,
    Event,
    Output,
    Progress,
    Sample,
    Started,
)
from epochzero.run.notes import leave_note, run_tags
from epochzero.run.progress import ProgressWatcher, progressed
from epochzero.run.reported import Reported
from epochzero.run.samples import SampleWatcher
from epochzero.run.snapshot import SnapshotWatcher
from epochzero.run.supervise import Options, run_attempt
from epochzero.run.watch.live import WHY, TrainingWatcher, WatchOptions, watched_environment
from epochzero.run.watcher import Clock, Watcher

if TYPE_CHECKING:
    from epochzero.check import Checked, Target
    from epochzero.code import Cache
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking
    from epochzero.run.retry import Attempt, Policy
    from epochzero.run.watch.model import Finding

__all__ = ["Failed", "Job", "Kept", "Listener", "Ran", "first_record", "run_here", "run_job"]

Kept = tuple[Path | None, Journal | None, int]
"""The folder and journal of an attempt, None where nothing can be kept, and its number."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is run, and what happens when it fails.

    Attributes:
        started: the first record of its first attempt.
        environment: of the job.
        policy: loads what decides about retries, when it is needed.
        advise: only says what it would do; nothing is started again.
        target: the platform that a check would have been asked about; None for this machine.
        cache: of parsed code.
        options: how each attempt is run.
        stall: seconds without output and without work until a stall is told.
        notes: the tools in which a diagnosis is noted (`epochzero.run.notes`).
        watch: how its training is watched; None for not at all.
    """

    started: Started
    environment: Mapping[str, str]
    policy: Callable[[], Policy]
    advise: bool = False
    target: Target | str | Path | None = None
    cache: Cache | None = None
    options: Options = field(default_factory=Options)
    stall: float = 300.0
    notes: tuple[str, ...] = ()
    watch: WatchOptions | None = None

    @property
    def is_one_of_many(self) -> bool:
        """Whether only a rank of the job runs here: the others would not meet one started again alone."""
        return self.started.rank is not None and (self.started.world_size or 1) > 1

    @property
    def only_advises(self) -> bool:
        """Whether nothing is started again, whatever is decided."""
        return self.advise or self.is_one_of_many


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt: what is known of it as soon as the job has ended.

    Attributes:
        started, ended: its first and last record.
        folder: where it is kept.
        diagnosis: None when its output is nothing that can be read.
        decision: what the policy says; None when a person ended the job, or nothing is kept.
        there_now: what the attempt missed and is there now, in a sentence; empty for nothing.
    """

    started: Started
    ended: Ended
    folder: Path | None
    diagnosis: Diagnosis | None = None
    decision: Decision | None = None
    there_now: str = ""


class Listener(Protocol):
    """Is told of a job as it goes."""

    def begins(self, journal: Journal | None) -> Sequence[Watcher]:
        """An attempt is about to start; answers who looks at it."""
        ...

    def failed(self, failed: Failed) -> None:
        """An attempt failed."""
        ...

    def explained(self, ranking: Ranking | None, checked: Checked | None) -> None:
        """Where in the code the bug may be, and what a check would have said before the start."""
        ...

    def noted(self, event: Event) -> None:
        """The diagnosis was noted in a tool, or could not be."""
        ...

    def found(self, finding: Finding) -> None:
        """Something is wrong with the training; called from a watcher's thread while the job runs."""
        ...

    def watched(self, training: TrainingWatcher) -> None:
        """The attempt has ended, and this is the verdict on its training."""
        ...

    def waits(self, seconds: float) -> bool:
        """A retry waits; returns after that time whether it shall be made."""
        ...

    def ends(self, journal: Journal | None) -> None:
        """All records of an attempt are written."""
        ...


def run_job(
    job: Job, keep: Callable[[int], Kept], listener: Listener
) -> tuple[Ended, Decision | None]:
    """Runs a job until it ends well, or until its policy or a person has had enough.

    Must be called from the main thread (`run_attempt`).

    Args:
        job: what is run.
        keep: makes the folder and journal of an attempt, the given number or a later one.
        listener: is told.

    Returns:
        How the last attempt ended, and what was decided about it.
    """
    attempts = _Attempts(job, listener)
    number = job.started.attempt
    while True:
        folder, journal, number = keep(number)
        ended, decision = attempts.run(number, folder, journal)
        if journal is not None:
            journal.close()
        listener.ends(journal)
        if decision is None or decision.action == "stop" or job.only_advises:
            return ended, decision
        if not listener.waits(decision.after):
            return ended, decision
        number += 1


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that was run.

    Attributes:
        job: its identity.
        ended: how its last attempt ended.
        failed: what its last failed attempt failed with; None when none did.
        folders: where its attempts are kept.
    """

    job: str
    ended: Ended
    failed: Failed | None
    folders: tuple[Path, ...]


def run_here(
    command: Sequence[str],
    home: Path,
    environment: Mapping[str, str],
    *,
    name: str,
    gpus: int,
    policy: str | Path,
    target: Target | str | Path | None,
) -> Ran:
    """See `epochzero.run.run`."""
    from epochzero.run.retry import load_policy

    chosen = load_policy(policy)
    name = name or name_of(command)
    launch = launch_of(environment, name)
    started = first_record(
        command,
        launch,
        name=name,
        gpus=gpus,
        folder=os.getcwd(),
        target=str(target) if isinstance(target, str | Path) else "",
    )
    listener = _Silent()

    def keep(attempt: int) -> Kept:
        while (folder := attempt_folder(home, launch.job, attempt, launch.rank)).exists():
            attempt += 1
        listener.folders.append(folder)
        return folder, Journal(folder), attempt

    job = Job(started, environment, policy=lambda: chosen, target=target)
    ended, _ = run_job(job, keep, listener)
    return Ran(launch.job, ended, listener.last, tuple(listener.folders))


def first_record(
    command: Sequence[str], launch: Launch, *, name: str, gpus: int, folder: str, target: str
) -> Started:
    """The first record of the first attempt of a job that this process is about to run."""
    return Started(
        job=launch.job,
        attempt=launch.attempt,
        name=name,
        command=tuple(command),
        folder=folder,
        host=platform.node(),
        user=_user(),
        pid=os.getpid(),
        time=time.time(),
        rank=launch.rank,
        world_size=launch.world_size,
        gpus=gpus,
        launcher=launch.launcher,
        scheduler=launch.scheduler,
        target=target,
    )


def _user() -> str:
    """Who runs the job; in a container the number need have no name."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return str(os.getuid())


class _Silent:
    """A listener that only remembers."""

    def __init__(self) -> None:
        self.last: Failed | None = None
        self.folders: list[Path] = []

    def begins(self, journal: Journal | None) -> Sequence[Watcher]:
        return ()

    def failed(self, failed: Failed) -> None:
        self.last = failed

    def explained(self, ranking: Ranking | None, checked: Checked | None) -> None:
        pass

    def noted(self, event: Event) -> None:
        pass

    def found(self, finding: Finding) -> None:
        pass

    def watched(self, training: TrainingWatcher) -> None:
        pass

    def waits(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def ends(self, journal: Journal | None) -> None:
        pass


class _Attempts:
    """The attempts of a job so far: what each failed with, and how far the farthest came."""

    def __init__(self, job: Job, listener: Listener) -> None:
        self._job = job
        self._listener = listener
        self._history: list[Attempt] = []
        self._farthest: Progress | None = None

    def run(
        self, number: int, folder: Path | None, journal: Journal | None
    ) -> tuple[Ended, Decision | None]:
        """Runs one attempt; tells what it failed with, and what to do about it."""
        clock = Clock()
        started = replace(self._job.started, attempt=number, time=clock.now()[0])
        environment = job_environment(
            self._job.environment, job=started.job, attempt=number, folder=folder
        )
        if "mlflow" in self._job.notes:
            environment |= run_tags(environment, job=started.job, attempt=number)
        training = None
        if self._job.watch is not None and folder is not None:
            training = TrainingWatcher(self._job.watch, self._listener.found)
            environment = watched_environment(environment, folder, self._job.watch)
        ended = run_attempt(
            started,
            folder,
            journal,
            environment=environment,
            options=self._job.options,
            watchers=(
                *self._watchers(started, environment),
                *filter(None, (training,)),
                *self._listener.begins(journal),
            ),
        )
        decision = None
        if ended.exit_code == 0:
            pass
        elif folder is None or journal is None or ended.why in ("not_started", "another_rank", WHY):
            self._listener.failed(Failed(started, ended, folder))
        else:
            decision = self._concluded(After(started, ended, folder, clock), journal)
        if training is not None and ended.why != "not_started":
            self._listener.watched(training)
        return ended, decision

    def _watchers(self, started: Started, environment: Mapping[str, str]) -> tuple[Watcher, ...]:
        folder = Path(started.folder)
        return (
            SnapshotWatcher(started.command, folder, environment),
            SampleWatcher(folder, environment),
            Reported(),
            ProgressWatcher(),
            RankWatcher(self._job.options.grace),
            StallWatcher(self._job.stall, environment),
            Preparation(),
        )

    def _concluded(self, after: After, journal: Journal) -> Decision | None:
        """Asks the tools, the quick and needed ones first, and writes what they say."""
        started, ended, job = after.started, after.ended, self._job
        left = _left(journal)
        diagnosis = after.diagnosis(left.outputs)
        decision, there_now = None, ""
        if diagnosis is not None and ended.why != "user":
            there_now = after.there_now(diagnosis, left.samples)
            decision = self._decided(after, diagnosis, left.progress, there_now=bool(there_now))
        self._listener.failed(Failed(started, ended, after.folder, diagnosis, decision, there_now))
        ranking = checked = None
        if ended.why != "user" and (
            decision is None or decision.action == "stop" or job.only_advises
        ):
            ranking = after.ranking(diagnosis, job.cache) if diagnosis is not None else None
            checked = after.checked(job.target)
            self._listener.explained(ranking, checked)
        journal.write(
            Concluded(
                *after.clock.now(),
                diagnosis=diagnosis.to_dict() if diagnosis is not None else None,
                ranking=ranking.to_dict() if ranking is not None else None,
                checked=checked.to_dict() if checked is not None else None,
                gpu_hours=started.gpus * ended.elapsed / 3600,
            )
        )
        for event in after.events:
            journal.write(event)
        if decision is not None:
            journal.write(decision)
        if diagnosis is not None:
            for event in self._noted(after, diagnosis, decision):
                journal.write(event)
                self._listener.noted(event)
        return decision

    def _noted(
        self, after: After, diagnosis: Diagnosis, decision: Decision | None
    ) -> Iterator[Event]:
        """Puts the diagnosis where the experiment is; takes seconds. One rank's is enough."""
        for tool in self._job.notes if not after.started.rank else ():
            yield leave_note(
                tool,
                after.started,
                diagnosis,
                decision,
                environment=self._job.environment,
                clock=after.clock,
            )

    def _decided(
        self, after: After, diagnosis: Diagnosis, progress: Progress | None, *, there_now: bool
    ) -> Decision:
        from epochzero.run.retry import Attempt, decide

        farther = progressed(self._farthest, progress)
        self._history.append(
            Attempt.of(
                diagnosis,
                ended_by=after.ended.why,
                progressed=farther and bool(self._history),
                checkpoint=progress is not None and bool(progress.checkpoint),
                there_now=there_now,
                seconds=after.ended.elapsed,
                gpus=after.started.gpus,
                host=after.started.host,
            )
        )
        if farther:
            self._farthest = progress
        time, elapsed = after.clock.now()
        return decide(self._job.policy(), self._history, time=time, elapsed=elapsed)


@dataclass(slots=True)
class _Left:
    """What an attempt has left: its logs, how far it came, and what it used."""

    outputs: list[Output] = field(default_factory=list)
    progress: Progress | None = None
    samples: list[Sample] = field(default_factory=list)


def _left(journal: Journal) -> _Left:
    """What the journal tells of an attempt; nothing where the job has removed it."""
    left = _Left()
    with suppress(InputError):
        for _, record in read_journal(journal.path):
            match record:
                case Output():
                    left.outputs.append(record)
                case Progress():
                    left.progress = record
                case Sample():
                    left.samples.append(record)
    return left
