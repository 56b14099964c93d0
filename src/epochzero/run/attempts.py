"""The attempts of a job, one after the other: what each failed with, and whether another helps.

attempt --(fails)--> diagnosis --> decision --(retry)--> wait --> attempt
                                      '--(stop)--> location, what a check would have said
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.attempt_setup import AttemptSetup
from epochzero.run.failure_report import After, Preparation
from epochzero.run.identity import home_of
from epochzero.run.job import Failed, Job, Listener
from epochzero.run.journal import Journal, read_journal
from epochzero.run.model import (
    Concluded,
    Decision,
    Ended,
    JobEvent,
    JobProgress,
    Output,
    Sample,
    Started,
)
from epochzero.run.notes import leave_note
from epochzero.run.observers.hangs import HangWatcher
from epochzero.run.observers.lost_tasks import LostTaskWatcher
from epochzero.run.observers.slow_ranks import SlowRankWatcher
from epochzero.run.progress import ProgressWatcher, progressed
from epochzero.run.progress_reports import Reported
from epochzero.run.ranks import RankWatcher
from epochzero.run.samples import SampleWatcher
from epochzero.run.snapshot import SnapshotWatcher
from epochzero.run.supervise import run_attempt
from epochzero.run.watch.live import WHY
from epochzero.run.watcher import Clock, Watcher

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis
    from epochzero.run.inject.outcome import Outcome
    from epochzero.run.retry import PastAttempt, Precedents
    from epochzero.run.spans import JobSpans
    from epochzero.run.watch.model import WatchResult


class Attempts:
    """The attempts of a job so far: what each failed with, and how far the farthest came.

    Attributes:
        failed: the last failure.
        watched: the verdict on the training of the last attempt that was watched.
        outcomes: of the faults injected so far.
    """

    def __init__(self, job: Job, listener: Listener) -> None:
        self._job = job
        self._listener = listener
        self._history: list[PastAttempt] = []
        self._farthest: JobProgress | None = None
        self._faults = job.request.faults
        self._spans: JobSpans | None = None
        if job.request.spans:
            from epochzero.run.spans import JobSpans

            self._spans = JobSpans(job.started, job.request.environment)
        self.failed: Failed | None = None
        self.watched: WatchResult | None = None
        self.outcomes: list[Outcome] = []

    def run(
        self, number: int, folder: Path | None, journal: Journal | None
    ) -> tuple[Ended, Decision | None]:
        """Run one attempt, diagnose its failure, and decide about a retry."""
        clock = Clock()
        started = replace(self._job.started, attempt=number, time=clock.now()[0])
        setup = AttemptSetup(self._job, started, folder, self._faults, self._listener)
        context = self._spans.start(started) if self._spans is not None else {}
        ended = run_attempt(
            started,
            folder,
            journal,
            environment={**setup.accompanied, **context},
            options=setup.options,
            watchers=(
                *self._watchers(started, setup.environment),
                *setup.watchers,
                *self._listener.begins(journal),
            ),
        )
        setup.ended()
        decision = None
        if ended.exit_code == 0:
            if folder is not None:
                _remembered(started, folder)
        elif folder is None or journal is None or ended.why in ("not_started", "another_rank", WHY):
            self._failed(Failed(started, ended, folder, fault=setup.fault(ended)))
        else:
            after = After(
                started,
                ended,
                folder,
                clock,
                setup.environment,
                setup.state or ended.state,
                limit=setup.limit,
            )
            decision = self._concluded(after, journal)
        if self._spans is not None:
            self._spans.end(ended, self._diagnosis(ended), decision)
        self._faults = setup.report(ended, decision, clock, journal)
        self.watched = setup.verdict
        self.outcomes += setup.outcomes
        return ended, decision

    def close(self, ended: Ended, decision: Decision | None) -> None:
        """The last attempt has ended, and there is no other."""
        if self._spans is not None:
            self._spans.close(ended, self._diagnosis(ended), decision)

    def _diagnosis(self, ended: Ended) -> Diagnosis | None:
        return self.failed.diagnosis if self.failed is not None and ended.exit_code else None

    def _failed(self, failed: Failed) -> None:
        self.failed = failed
        self._listener.failed(failed)

    def _watchers(self, started: Started, environment: Mapping[str, str]) -> tuple[Watcher, ...]:
        folder = Path(started.folder)
        return (
            SnapshotWatcher(started.command, folder, environment),
            SampleWatcher(folder, environment),
            Reported(),
            ProgressWatcher(),
            RankWatcher(self._job.request.options.grace),
            HangWatcher(
                self._job.request.stall,
                environment,
                rank=started.rank,
                on_hang=self._job.request.on_hang,
                on_event=self._listener.hung,
            ),
            *([LostTaskWatcher(self._listener.observed)] if started.scheduler else ()),
            SlowRankWatcher(environment, gpus=started.gpus, on_event=self._listener.observed),
            Preparation(),
        )

    def _concluded(self, after: After, journal: Journal) -> Decision | None:
        """Ask the tools, the quick ones that the decision needs first, and write their answers."""
        started, ended, job = after.started, after.ended, self._job
        left = _left(journal)
        diagnosis = after.diagnosis(left.outputs)
        decision, there_now, unseeded, environment = None, "", "", ""
        if diagnosis is not None and ended.why != "user":
            there_now = after.there_now(diagnosis, left.samples)
            unseeded = after.unseeded(diagnosis)
            environment = after.subject(diagnosis, left.epochs)
            decision = self._decided(
                after,
                diagnosis,
                left,
                {
                    "there_now": there_now,
                    "unseeded": unseeded,
                    "shared_storage": after.shared_storage(diagnosis),
                    "environment": environment,
                },
            )
        self._failed(
            Failed(
                started,
                ended,
                after.folder,
                diagnosis,
                decision,
                there_now=there_now,
                unseeded=unseeded,
                environment=environment,
            )
        )
        ranking = checked = None
        if ended.why != "user" and (
            decision is None or decision.action == "stop" or not job.starts_again(ended)
        ):
            ranking = after.ranking(diagnosis, job.request.cache) if diagnosis is not None else None
            checked = after.checked(job.request.target)
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
    ) -> Iterator[JobEvent]:
        """Add the diagnosis to experiment trackers, which takes seconds. One rank does it for all."""
        for tool in self._job.request.notes if not after.started.rank else ():
            yield leave_note(
                tool,
                after.started,
                diagnosis,
                decision,
                environment=self._job.request.environment,
                clock=after.clock,
            )

    def _decided(
        self,
        after: After,
        diagnosis: Diagnosis,
        left: _Left,
        evidence: Mapping[str, str],
    ) -> Decision:
        from epochzero.run.retry import PastAttempt, decide

        progress, seconds = left.progress, after.ended.elapsed
        farther = progressed(self._farthest, progress)
        self._history.append(
            PastAttempt.of(
                diagnosis,
                ended_by=after.ended.why,
                progressed=farther and bool(self._history),
                checkpoint=progress is not None and bool(progress.checkpoint),
                evidence=(fact for fact, text in evidence.items() if text),
                precedents=_remembered(
                    after.started,
                    after.folder,
                    diagnosis,
                    storage=evidence["shared_storage"],
                    step=progress.step or 0 if progress is not None else 0,
                ),
                seconds=seconds,
                since_checkpoint=None if left.saved is None else seconds - left.saved,
                gpus=after.started.gpus,
                host=after.started.host,
            )
        )
        if farther:
            self._farthest = progress
        now, elapsed = after.clock.now()
        return decide(self._job.policy(), self._history, time=now, elapsed=elapsed)


def _remembered(
    started: Started,
    folder: Path,
    diagnosis: Diagnosis | None = None,
    *,
    storage: str = "",
    step: int = 0,
) -> Precedents:
    """Adds an attempt to the history of its home: one that passed, if there is no diagnosis.

    One rank stands for its job.

    Returns:
        What the history knows about its failure.
    """
    from epochzero.run.retry import EndedAttempt, Precedents, program_of, remember

    if started.rank:
        return Precedents()
    attempt = EndedAttempt(
        time=time.time(),
        job=started.job,
        program=program_of(started.command, Path(started.folder)),
        host=(diagnosis and diagnosis.root and diagnosis.root.host) or started.host,
        passed=diagnosis is None,
        fingerprint=diagnosis.fingerprint if diagnosis else "",
        dimension=diagnosis.dimension if diagnosis else "",
        storage=storage,
        directory=started.folder,
        step=step,
    )
    return remember(home_of(folder), attempt)


@dataclass(slots=True)
class _Left:
    """What an attempt has left: its logs, how far it came, and what it used."""

    outputs: list[Output] = field(default_factory=list)
    progress: JobProgress | None = None
    samples: list[Sample] = field(default_factory=list)
    first_epoch: float | None = None
    saved: float | None = None
    """Seconds from its start to its last checkpoint."""

    @property
    def epochs(self) -> float:
        """How many it completed at least, whether it counts from 0 or 1."""
        last = self.progress.epoch if self.progress is not None else None
        return 0.0 if last is None or self.first_epoch is None else last - self.first_epoch


def _left(journal: Journal) -> _Left:
    """What the journal holds of an attempt; nothing if the job has deleted it."""
    left = _Left()
    with suppress(InputError):
        for _, record in read_journal(journal.path):
            match record:
                case Output():
                    left.outputs.append(record)
                case JobProgress():
                    before = left.progress.checkpoint if left.progress is not None else ""
                    if record.checkpoint not in ("", before):
                        left.saved = record.elapsed
                    left.progress = record
                    left.first_epoch = (
                        record.epoch if left.first_epoch is None else left.first_epoch
                    )
                case Sample():
                    left.samples.append(record)
    return left
