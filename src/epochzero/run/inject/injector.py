"""The watcher that makes the platform fail and records the outcomes.

A fault is due at a time or at a step: an optimizer step that the job's process counts, or the step in the job's
log, whichever comes first. Faults within the job's Python happen there; what a kernel or a scheduler would do is
done here, once per second.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from epochzero.injected.companions import Companion
from epochzero.platform import name_of
from epochzero.run.inject.grammar import InjectedFault
from epochzero.run.inject.outcome import Came, InjectionOutcome, judged
from epochzero.run.inject.plan import COMPANIONS, Began, InjectionPlan
from epochzero.run.observers.progress import ProgressWatcher
from epochzero.run.observers.progress_reports import ProgressFileWatcher
from epochzero.run.observers.ranks import rank_of
from epochzero.run.process.tree import send
from epochzero.run.process.usage import ProcessTree
from epochzero.run.process.watcher import EndJob, Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Decision, End, JobEvent, JobProgress, Record

WHY = "scheduler"
"""`End.why` of a preempted job, the same as after termination by a scheduler."""


class Injector(Watcher):
    """A watcher of one attempt.

    Attributes:
        companions: companions to start in the job's process.
    """

    def __init__(self, faults: Sequence[InjectedFault]) -> None:
        """Create the watcher.

        Args:
            faults: those that have not occurred in an earlier attempt.
        """
        self._faults = faults
        self._came: list[Came | None] = [None] * len(faults)
        self._plan: InjectionPlan | None = None
        self._prepared: Path | None = None
        self._progress: JobProgress | None = None
        self._readers = (ProgressFileWatcher(), ProgressWatcher())
        self.companions: Sequence[Companion] = ()

    def prepare(self, environment: Mapping[str, str], folder: Path | None) -> dict[str, str]:
        """Return the environment of the job with the planned faults.

        Args:
            environment: of the job.
            folder: of the attempt; without one, nothing can be injected.
        """
        with suppress(OSError):
            if folder is not None:
                self._plan = InjectionPlan(folder, self._faults)
                self._prepared, self.companions = folder, COMPANIONS
                return self._plan.environment(environment)
        return dict(environment)

    def left(self) -> tuple[InjectedFault, ...]:
        """Return the faults that have not occurred: the next attempt may meet them."""
        pairs = zip(self._faults, self._came, strict=True)
        return tuple(fault for fault, came in pairs if came is None)

    def outcomes(self, ended: End, decision: Decision | None) -> tuple[InjectionOutcome, ...]:
        """Return the outcome of each fault."""
        plan = self._plan
        return judged(
            self._faults,
            self._came,
            [plan.met(number) if plan else () for number in range(len(self._faults))],
            folder=self._prepared,
            ended=ended,
            decision=decision,
            progress=self._progress,
        )

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterator[Record]:
        """See `Watcher`."""
        self._clock = clock
        self._first = pid
        self._tree = ProcessTree(pid)
        for reader in self._readers:
            reader.started(pid, folder, clock)
        return iter(())

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """See `Watcher`: read steps from the log."""
        for reader in self._readers:
            reader.output(name, data)
        return ()

    def tick(self) -> Iterator[Record]:
        """See `Watcher`: trigger the faults that are due.

        Raises:
            EndJob: the job is preempted.
        """
        self._read(reader.tick() for reader in self._readers)
        yield from self._due(acts=True)

    def ended(self) -> Iterator[Record]:
        """See `Watcher`: read what happened within the job in the last second."""
        self._read(reader.ended() for reader in self._readers)
        yield from self._due(acts=False)

    def _read(self, events: Iterable[Iterable[Record]]) -> None:
        for records in events:
            for record in records:
                if isinstance(record, JobProgress):
                    self._progress = record

    def _due(self, *, acts: bool) -> Iterator[Record]:
        """Yield the events of faults that occurred; with ``acts``, also trigger those that are due."""
        ending = None
        for number, fault in enumerate(self._faults):
            if self._plan is None or self._came[number] is not None:
                continue
            began = self._plan.began(number)
            if began is None and self._log_is_there(fault) and (acts or fault.kind.inside):
                self._plan.begin(number)
                began = self._plan.began(number)
            if began is None or not (acts or fault.kind.inside):
                continue
            came = self._bring(fault, began)
            self._came[number] = came
            details = {"fault": fault.text}
            text = f"{fault.text}: {came.impossible or came.what or fault.kind.does}"
            yield JobEvent(*self._clock.now(), "injected", text, details=details)
            if fault.name == "preempt":
                ending = fault
            self._plan.done(number)
        if ending is not None:
            text = f"the scheduler preempts the job, with {ending.notice:g} s notice"
            raise EndJob(WHY, None, text, grace=ending.notice)

    def _log_is_there(self, fault: InjectedFault) -> bool:
        """Whether a fault is due by time, or by the step in the log.

        A fault that only torch can trigger is due at a step that is counted within the job.
        """
        if fault.kind.needs:
            return False
        if fault.after is not None:
            return self._clock.now()[1] >= fault.after
        step = self._progress.step if self._progress is not None else None
        return step is not None and fault.step is not None and step >= fault.step

    def _bring(self, fault: InjectedFault, began: Began) -> Came:
        step = began.step
        if step is None and fault.step is not None and self._progress is not None:
            step = self._progress.step
        what = impossible = ""
        if fault.name == "kill-rank":
            what, impossible = self._kill_rank(fault.rank, began.pid)
        elif fault.name == "host-oom":
            what, impossible = self._kill_largest()
        elif fault.name == "preempt":
            what = f"SIGTERM was sent to the job, with {fault.notice:g} s notice"
        return Came(began.elapsed, step, what, impossible, self._progress)

    def _kill_rank(self, rank: int, pid: int) -> tuple[str, str]:
        """Return what was done and, if nothing could be done, the reason."""
        processes = self._tree.read()
        ranks = {
            found.number: found.process.pid for process in processes if (found := rank_of(process))
        }
        if not ranks and rank == 0:
            # In its own namespace a process has another number.
            known = pid in {process.pid for process in processes}
            return self._kill(pid if known else self._first, "the job's only rank")
        if rank not in ranks:
            there = (
                f"its ranks are {', '.join(map(str, sorted(ranks)))}"
                if ranks
                else "it has no ranks"
            )
            return "", f"No process of the job on this machine is rank {rank}; {there}."
        return self._kill(ranks[rank], f"rank {rank}")

    def _kill_largest(self) -> tuple[str, str]:
        processes = self._tree.read()
        if not processes:
            return "", "The job had no running process."
        largest = max(processes, key=lambda process: process.memory_bytes)
        return self._kill(largest.pid, f"the largest process, of {largest.memory_bytes >> 20} MiB")

    def _kill(self, pid: int, who: str) -> tuple[str, str]:
        name = name_of(pid)
        send(signal.SIGKILL, [pid])
        return f"{who} ({name} {pid}) was killed", ""
