"""A whole job: what is run, what it failed with, and who is notified."""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.platform import user_id
from epochzero.run.observers.hangs import HUNG
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.journal import Journal
from epochzero.run.records.launch import Launch
from epochzero.run.records.model import Decision, End, JobEvent, Start
from epochzero.run.request import RunRequest

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking
    from epochzero.run.inject.outcome import InjectionOutcome
    from epochzero.run.retry import Policy
    from epochzero.run.simulate.model import Aspect, SimulationOptions
    from epochzero.run.watch.live import News, TrainingWatcher
    from epochzero.run.watch.model import TrainingFinding


Kept = tuple[Path | None, Journal | None, int]
"""The folder and journal of an attempt, None where nothing can be kept, and its number."""


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that is about to run.

    Attributes:
        request: what the caller asked for.
        started: the first record of its first attempt.
        policy: loads the retry policy when it is needed.
        simulation: how the platform is simulated; None for no simulation.
    """

    request: RunRequest
    started: Start
    policy: Callable[[], Policy]
    simulation: SimulationOptions | None = None

    @property
    def is_one_of_many(self) -> bool:
        """Whether only a rank of the job runs here: the others would not meet one started again alone."""
        return self.started.rank is not None and (self.started.world_size or 1) > 1

    def starts_again(self, ended: End) -> bool:
        """Whether a retry that is decided on after this end is made."""
        # A scheduler that asks a job to exit has ended its allocation, or is about to.
        if self.is_one_of_many or (self.started.scheduler and ended.why == "scheduler"):
            return False
        request = self.request
        return request.retries != "advise" or (ended.why == HUNG and request.on_hang == "restart")


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt, as soon as the job has exited.

    Attributes:
        started, ended: its first and last record.
        folder: where it is stored; None if it is not.
        diagnosis: None if its output cannot be read.
        decision: of the retry policy; None if a person terminated the job, or nothing is stored.
        evidence: other facts, by their names in `epochzero.run.retry.policy.EVIDENCE`.
        fault: the training fault for which it was terminated; None for none.
    """

    started: Start
    ended: End
    folder: Path | None
    diagnosis: Diagnosis | None = None
    decision: Decision | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    fault: TrainingFinding | None = None


class Listener:
    """Receives the events of a job. A subclass overrides those that it wants; here nothing happens."""

    def begins(self, journal: Journal | None) -> Sequence[Watcher]:
        """An attempt is about to start; answers who looks at it."""
        return ()

    def failed(self, failed: FailedAttempt) -> None:
        """An attempt failed."""

    def explained(self, ranking: Ranking | None, checked: CheckResult | None) -> None:
        """Where in the code the bug may be, and what a check would report before the start."""

    def noted(self, event: JobEvent) -> None:
        """The diagnosis was noted in a tool, or could not be."""

    def found(self, news: News) -> None:
        """Something is wrong with the training; called from a watcher's thread while the job runs."""

    def hung(self, event: JobEvent) -> None:
        """The job hangs, or works again; called from a watcher's thread while the job runs."""

    def observed(self, event: JobEvent) -> None:
        """A rank is slow, or was lost while the job continues; called from a watcher's thread."""

    def watched(self, training: TrainingWatcher) -> None:
        """The attempt has ended, and this is the verdict on its training."""

    def injected(self, outcomes: Sequence[InjectionOutcome]) -> None:
        """The attempt has ended, and this came of the faults that were injected."""

    def simulates(self, aspects: Sequence[Aspect]) -> None:
        """An attempt is about to start on a simulated platform, with these aspects."""

    def waits(self, seconds: float) -> bool:
        """A retry waits; returns after that time whether it shall be made."""
        time.sleep(seconds)
        return True

    def ends(self, journal: Journal | None) -> None:
        """All records of an attempt are written."""

    def stored_elsewhere(self, wanted: Path, home: Path | None) -> None:
        """An attempt cannot be stored in the wanted directory; None when it is not stored at all."""


def first_record(
    command: Sequence[str], launch: Launch, *, name: str, gpus: int, folder: str, target: str
) -> Start:
    """The first record of the first attempt of a job that this process is about to run."""
    return Start(
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
    return str(user_id())
