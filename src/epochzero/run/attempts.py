"""The attempts of a job, one after the other: what each failed with, and whether another helps.

attempt --(fails)--> diagnosis --> decision --(retry)--> wait --> attempt
                                      '--(stop)--> location, what a check would report
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from epochzero.run.attempt_setup import AttemptSetup
from epochzero.run.job import FailedAttempt, Listener, PlannedJob
from epochzero.run.notes import leave_note
from epochzero.run.observers.hangs import HangWatcher
from epochzero.run.observers.lost_tasks import LostTaskWatcher
from epochzero.run.observers.progress import ProgressWatcher, progressed
from epochzero.run.observers.progress_reports import ProgressFileWatcher
from epochzero.run.observers.ranks import RankWatcher
from epochzero.run.observers.samples import SampleWatcher
from epochzero.run.observers.slow_ranks import SlowRankWatcher
from epochzero.run.observers.snapshot import SnapshotWatcher
from epochzero.run.process.supervisor import run_attempt
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.identity import CHECKPOINT_VARIABLE, home_of
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import Conclusion, Decision, End, JobEvent, JobProgress, Start
from epochzero.run.reports.failure_report import After, AttemptFiles, Preparation, left_by
from epochzero.run.watch.live import WHY

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis
    from epochzero.run.inject.outcome import InjectionOutcome
    from epochzero.run.reports.spans import JobSpans
    from epochzero.run.retry import PastAttempt, Precedents
    from epochzero.run.watch.model import WatchResult


class Attempts:
    """The attempts of a job so far: what each failed with, and how far the farthest came.

    Attributes:
        failed: the last failure.
        watched: the verdict on the training of the last attempt that was watched.
        outcomes: of the faults injected so far.
    """

    def __init__(self, job: PlannedJob, listener: Listener) -> None:
        self._job = job
        self._listener = listener
        self._history: list[PastAttempt] = []
        self._farthest: JobProgress | None = None
        self._checkpoint: Path | None = None
        self._faults = job.request.faults
        self._spans: JobSpans | None = None
        if job.request.spans:
            from epochzero.run.reports.spans import JobSpans

            self._spans = JobSpans(job.started, job.request.environment)
        self.failed: FailedAttempt | None = None
        self.watched: WatchResult | None = None
        self.outcomes: list[InjectionOutcome] = []

    def run(
        self, number: int, folder: Path | None, journal: Journal | None
    ) -> tuple[End, Decision | None]:
        """Run one attempt, diagnose its failure, and decide about a retry."""
        clock = Clock()
        started = replace(self._job.started, attempt=number, time=clock.now()[0])
        setup = AttemptSetup(self._job, started, folder, self._faults, self._listener)
        context = self._spans.start(started) if self._spans is not None else {}
        resumed = {CHECKPOINT_VARIABLE: str(self._checkpoint)} if self._checkpoint else {}
        ended = run_attempt(
            started,
            folder,
            journal,
            environment={**setup.accompanied, **context, **resumed},
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
            self._failed(FailedAttempt(started, ended, folder, fault=setup.fault(ended)))
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

    def close(self, ended: End, decision: Decision | None) -> None:
        """The last attempt has ended, and there is no other."""
        if self._spans is not None:
            self._spans.close(ended, self._diagnosis(ended), decision)

    def _diagnosis(self, ended: End) -> Diagnosis | None:
        return self.failed.diagnosis if self.failed is not None and ended.exit_code else None

    def _failed(self, failed: FailedAttempt) -> None:
        self.failed = failed
        self._listener.failed(failed)

    def _watchers(self, started: Start, environment: Mapping[str, str]) -> tuple[Watcher, ...]:
        folder = Path(started.folder)
        return (
            SnapshotWatcher(started.command, folder, environment),
            SampleWatcher(folder, environment),
            ProgressFileWatcher(),
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
        left = left_by(journal)
        diagnosis = after.diagnosis(left.outputs)
        decision: Decision | None = None
        evidence: Mapping[str, str] = {}
        if diagnosis is not None and ended.why != "user":
            evidence = after.evidence(diagnosis, left)
            decision = self._decided(after, diagnosis, left, evidence)
        self._failed(FailedAttempt(started, ended, after.folder, diagnosis, decision, evidence))
        ranking = checked = None
        if ended.why != "user" and (
            decision is None or decision.action == "stop" or not job.starts_again(ended)
        ):
            ranking = after.ranking(diagnosis, job.request.cache) if diagnosis is not None else None
            checked = after.checked(job.request.target)
            self._listener.explained(ranking, checked)
        journal.write(
            Conclusion(
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
        left: AttemptFiles,
        evidence: Mapping[str, str],
    ) -> Decision:
        from epochzero.run.retry import PastAttempt, decide

        progress, seconds = left.progress, after.ended.elapsed
        farther = progressed(self._farthest, progress)
        precedents = _remembered(after.started, after.folder, diagnosis, evidence, progress)
        if precedents.neighbours and after.foreseen(diagnosis, self._job.request.target):
            # The code and what exists now explain it: that others fail as well does not make it transient.
            precedents = replace(precedents, neighbours=0)
        self._history.append(
            PastAttempt.of(
                diagnosis,
                ended_by=after.ended.why,
                progressed=farther and bool(self._history),
                checkpoint=progress is not None and bool(progress.checkpoint),
                evidence=evidence,
                precedents=precedents,
                seconds=seconds,
                since_checkpoint=None if left.saved is None else seconds - left.saved,
                gpus=after.started.gpus,
                host=after.started.host,
            )
        )
        if farther:
            self._farthest = progress
        if progress is not None and progress.checkpoint:
            written = Path(after.started.folder, progress.checkpoint).expanduser()
            self._checkpoint = written if written.exists() else self._checkpoint
        now, elapsed = after.clock.now()
        decision = decide(self._job.policy(), self._history, time=now, elapsed=elapsed)
        if self._checkpoint is None or decision.action == "stop":
            return decision
        # The job decides whether to resume: it only receives the path of its last checkpoint.
        can_resume = f"It can resume from {self._checkpoint} ({CHECKPOINT_VARIABLE})."
        return replace(decision, reason=f"{decision.reason} {can_resume}")


def _remembered(
    started: Start,
    folder: Path,
    diagnosis: Diagnosis | None = None,
    evidence: Mapping[str, str] = MappingProxyType({}),
    progress: JobProgress | None = None,
) -> Precedents:
    """Adds an attempt to the history of its home: one that passed, if there is no diagnosis.

    One rank stands for its job.

    Returns:
        What the history knows about its failure.
    """
    from epochzero.run.retry import (
        EndedAttempt,
        Precedents,
        code_of,
        program_of,
        remember,
        shared_resource,
    )

    if started.rank:
        return Precedents()
    about = evidence.get("environment", "")
    attempt = EndedAttempt(
        time=time.time(),
        job=started.job,
        program=program_of(started.command, Path(started.folder)),
        host=(diagnosis and diagnosis.root and diagnosis.root.host) or started.host,
        passed=diagnosis is None,
        fingerprint=diagnosis.fingerprint if diagnosis else "",
        storage=evidence.get("shared_storage", ""),
        directory=started.folder,
        step=progress.step or 0 if progress is not None else 0,
        code=code_of(started.command, Path(started.folder)),
        resource=shared_resource(diagnosis, started, about) if diagnosis else "",
    )
    return remember(home_of(folder), attempt)
