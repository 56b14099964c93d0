"""What goes along with one attempt: a simulated platform, watching, faults on purpose, a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.injected.companions import Companion, with_companions
from epochzero.run.notes import run_tags
from epochzero.run.observers.collectives import COLLECTIVES_COMPANION
from epochzero.run.observers.hangs import STACKS_COMPANION, with_stacks
from epochzero.run.observers.slow_ranks import STEPS_COMPANION, with_steps
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.journal import Journal
from epochzero.run.records.launch import job_environment
from epochzero.run.records.model import Decision, End, Start
from epochzero.run.replay.capture import CAPTURE_COMPANIONS, captured_environment, write_job
from epochzero.run.simulate.companions import SIMULATE_COMPANIONS
from epochzero.run.watch.live import WATCH_COMPANIONS, WHY, TrainingWatcher, watched_environment

if TYPE_CHECKING:
    from epochzero.run.inject.grammar import InjectedFault
    from epochzero.run.inject.injector import Injector
    from epochzero.run.inject.outcome import InjectionOutcome
    from epochzero.run.job import Listener, PlannedJob
    from epochzero.run.simulate.limits import LimitWatcher
    from epochzero.run.simulate.model import SimulationOptions
    from epochzero.run.watch.model import TrainingFinding, WatchResult


class AttemptSetup:
    """What the request adds to an attempt: simulation, watching, injected faults and capture.

    Attributes:
        environment: of the attempt.
        options: how it is run.
        verdict: on the training, after `report`; None if it was not watched.
        outcomes: of the injected faults, after `report`.
    """

    def __init__(
        self,
        job: PlannedJob,
        started: Start,
        folder: Path | None,
        faults: Sequence[InjectedFault],
        listener: Listener,
    ) -> None:
        """Prepare the environment, companions and watchers.

        Args:
            job: with its request.
            started: the first record of the attempt.
            folder: the attempt's directory; without one, nothing is watched or captured.
            faults: that were not injected yet.
            listener: receives the results.

        Raises:
            InputError: the platform cannot be simulated here.
        """
        request = job.request
        self.environment: Mapping[str, str] = request.environment
        self.options = request.options
        self._job, self._started, self._folder, self._listener = job, started, folder, listener
        self._companions: list[Companion] = []
        self._limits: LimitWatcher | None = None
        self._training: TrainingWatcher | None = None
        self._injector: Injector | None = None
        self.verdict: WatchResult | None = None
        self.outcomes: Sequence[InjectionOutcome] = ()
        if job.simulation is not None:
            self._simulate(job.simulation)
        self.environment = job_environment(
            self.environment, job=started.job, attempt=started.attempt, folder=folder
        )
        if "mlflow" in request.notes:
            self.environment |= run_tags(self.environment, job=started.job, attempt=started.attempt)
        if request.watch is not None and folder is not None:
            self._training = TrainingWatcher(request.watch, listener.found)
            self.environment = watched_environment(self.environment, folder, request.watch)
            self._companions += WATCH_COMPANIONS
        if folder is not None:
            self.environment = with_steps(with_stacks(self.environment, folder), folder)
            self._companions += [STACKS_COMPANION, STEPS_COMPANION, COLLECTIVES_COMPANION]
        if faults:
            from epochzero.run.inject.injector import Injector

            self._injector = Injector(faults)
            self.environment = self._injector.prepare(self.environment, folder)
            self._companions += self._injector.companions
        if request.capture and folder is not None:
            self.environment = captured_environment(self.environment, folder)
            self._companions += CAPTURE_COMPANIONS

    @property
    def accompanied(self) -> Mapping[str, str]:
        """The environment that the job starts with: companions begin in its process."""
        if self._folder is None:
            return self.environment
        return with_companions(self.environment, self._companions, self._folder)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """The watchers of the attempt."""
        watchers = (self._limits, self._training, self._injector)
        return tuple(watcher for watcher in watchers if watcher is not None)

    @property
    def state(self) -> str:
        """The state that a scheduler would report; empty if no limit of the platform was reached."""
        return self._limits.state if self._limits is not None else ""

    @property
    def limit(self) -> str:
        """The limit that the simulated platform enforced, in words; empty for none."""
        return self._limits.text if self._limits is not None else ""

    def ended(self) -> None:
        """The attempt has ended: store what a replay needs."""
        if self._job.request.capture and self._folder is not None:
            write_job(self._folder, self._started, self.environment)

    def fault(self, ended: End) -> TrainingFinding | None:
        """The fault of its training for which the job was ended."""
        return self._training.fault if self._training is not None and ended.why == WHY else None

    def report(
        self, ended: End, decision: Decision | None, clock: Clock, journal: Journal | None
    ) -> tuple[InjectedFault, ...]:
        """Report and store the results; returns the faults that were not injected."""
        if self._training is not None and ended.why != "not_started":
            self.verdict = self._training.watched
            self._listener.watched(self._training)
        if self._injector is None:
            return ()
        from epochzero.run.inject.outcome import to_event

        self.outcomes = self._injector.outcomes(ended, decision)
        if journal is not None:
            for outcome in self.outcomes:
                journal.write(to_event(outcome, clock))
        self._listener.injected(self.outcomes)
        return tuple(self._injector.left())

    def _simulate(self, options: SimulationOptions) -> None:
        from epochzero.run.simulate.limits import LimitWatcher
        from epochzero.run.simulate.plan import plan

        started = self._started
        if self._folder is None:
            raise InputError(
                "a platform cannot be simulated because no directory for the job is writable"
            )
        planned = plan(options, started.command, started.folder, self.environment, self._folder)
        self._listener.simulates(planned.aspects)
        self._limits = LimitWatcher(planned, self.options.grace)
        self.options = replace(self.options, command=tuple(planned.command))
        self.environment = planned.environment
        self._companions += SIMULATE_COMPANIONS
