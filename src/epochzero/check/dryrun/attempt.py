"""One run of the child: its configuration and its output."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from epochzero.check.dryrun.child.ranks import VARIABLES, running
from epochzero.check.dryrun.contain.model import Exit, Limits
from epochzero.check.dryrun.model import Ending, Mode, ProvidedFiles
from epochzero.check.dryrun.process import RECORDS_DESCRIPTOR, SPEC_DESCRIPTOR, run_contained
from epochzero.check.dryrun.records import (
    EndRecord,
    ErrorRecord,
    HangRecord,
    Record,
    ResumeRecord,
    SkipRecord,
    UnfitRecord,
    read,
)
from epochzero.check.launch.model import Job
from epochzero.check.target.model import GPU
from epochzero.launchers import variables_with_value

CHILD = Path(__file__).parent / "child" / "__main__.py"

OnRecord: TypeAlias = Callable[[Record], object]
_Kind = TypeVar("_Kind", bound=Record)


@dataclass(frozen=True, slots=True)
class DryRunPlan:
    """How the child runs a job.

    Attributes:
        mode: with real values on the CPU, or with the shapes that the GPUs would see.
        gpus: GPUs that the job sees; empty if it uses none.
        devices: devices that it sees in JAX, all of them the CPU of this machine.
        whole: loops are not shortened.
        often: iterations with equal observations before a shortened loop jumps ahead.
        batch: maximum number of samples in a batch; 0 for no limit.
        resume: the script runs again with its own checkpoint.
        made: data that are placed where the job reads its own.
        claims: absolute paths and lines that a rule claims to fail.
    """

    mode: Mode
    gpus: Sequence[GPU] = ()
    devices: int = 1
    whole: bool = False
    often: int = 1
    batch: int = 0
    resume: bool = True
    made: Sequence[ProvidedFiles] = ()
    claims: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class DryRunAttempt:
    """One run of the child, with its output."""

    plan: DryRunPlan
    ended: Exit
    records: tuple[Record, ...]

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """The records of a type."""
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def resumed(self) -> ResumeRecord | None:
        """The script completed, and was started again with its checkpoint."""
        return next(iter(self.of(ResumeRecord)), None)

    @property
    def raised(self) -> ErrorRecord | None:
        """The error that ended the script."""
        return next(reversed(self.of(ErrorRecord)), None)

    @property
    def hung(self) -> HangRecord | None:
        """Where the ranks of the job wait for each other."""
        return next(iter(self.of(HangRecord)), None)

    @property
    def cut(self) -> SkipRecord | None:
        """A loop that the time limit cut off, although the script went on behind it."""
        return next((loop for loop in self.of(SkipRecord) if loop.cut), None)

    @property
    def unfit(self) -> UnfitRecord | None:
        """Why the GPUs could not be simulated."""
        return next(iter(self.of(UnfitRecord)), None)

    @property
    def ended_itself(self) -> bool:
        """Whether the process exited although Python did not end the script."""
        explained = self.of(EndRecord) or self.raised or self.hung or self.unfit
        return not explained and self.ended.code is not None

    @property
    def in_order(self) -> bool:
        """Whether the script itself reported its end, if only because of the time limit."""
        last = next((r for r in reversed(self.records) if isinstance(r, _ENDS)), None)
        return isinstance(last, EndRecord)

    @property
    def ending(self) -> Ending:
        """How it ended, as one word."""
        explained = self.of(EndRecord)
        if self.ended.limit == "time" or (self.in_order and explained[-1].why == "time"):
            return "time"
        if self.ended.limit or self.ended.signal:
            return "killed"
        return "failed" if self.raised or self.ended.code else "finished"


_ENDS = (EndRecord, ErrorRecord, ResumeRecord)


def attempt(
    job: Job,
    plan: DryRunPlan,
    limits: Limits,
    environment: Mapping[str, str],
    on_record: OnRecord,
    keep: Path | None = None,
) -> DryRunAttempt:
    """Run the child once.

    Args:
        job: job to run.
        plan: how to run it.
        limits: resource limits.
        environment: environment of the command.
        on_record: called with each record as it arrives.
        keep: empty directory for copies of the files that the job writes; None to discard them.
    """
    given = {**environment, **{name: v for name, v in job.environment.items() if v is not None}}
    ranks = _ranks(job, plan)
    spec = {
        "script": str(job.script) if job.script and not job.module else None,
        "module": job.module,
        "code": job.code
        and {"path": str(job.base / job.code.place.path), "text": job.code.in_place},
        "argv": job.argv,
        "roots": [str(folder) for folder in _roots(job)],
        "mode": plan.mode,
        "gpus": [
            {"model": g.model, "memory_bytes": g.memory_bytes, "capability": g.capability}
            for g in plan.gpus
        ],
        "devices": plan.devices,
        "world": {"size": job.ranks, "rank": 0, "local_size": _ranks_per_node(job)},
        "ranks": [{"rank": rank, "environment": _launched(job, rank)} for rank in ranks],
        "seconds": _own_seconds(limits.seconds),
        "whole": plan.whole,
        "often": plan.often,
        "batch": plan.batch,
        "resume": plan.resume,
        "claims": list(plan.claims),
        "made": [*(("", str(job.base / s.text)) for s in job.launch_script.makes), *plan.made],
    }
    ended = run_contained(
        [_python(job, given), str(CHILD), str(SPEC_DESCRIPTOR), str(RECORDS_DESCRIPTOR)],
        folder=job.folder,
        environment=(VARIABLES if len(ranks) > 1 else {}) | given | _launched(job, 0),
        limits=limits,
        spec=json.dumps(spec).encode(),
        keep=keep,
        on_record=lambda line: list(map(on_record, read([line]))),
    )
    return DryRunAttempt(plan, ended, tuple(read(ended.records)))


def _own_seconds(seconds: float) -> float:
    """When the child stops itself, early enough to report its position before it is killed."""
    return max(seconds - max(seconds / 10, 1.0), seconds / 2)


def _ranks(job: Job, plan: DryRunPlan) -> Sequence[int]:
    """The ranks that run as processes; on simulated GPUs the first stands for all."""
    if plan.mode == "fake" or job.ranks == 1:
        return [0]
    return running(job.ranks)


def _ranks_per_node(job: Job) -> int:
    return job.allocation.processes_per_node or (job.ranks // (job.allocation.nodes or 1)) or 1


def _launched(job: Job, rank: int) -> dict[str, str]:
    """The variables that the job's launchers set for a rank."""
    each = _ranks_per_node(job)
    values = {
        "rank": rank,
        "local_rank": rank % each,
        "node_rank": rank // each,
        "processes": job.ranks,
        "processes_per_node": each,
        "address": "127.0.0.1",
        "port": 29511,
        "run": "dry",
        "restarts": 0,
        "step": 0,
        "job": 1,
        "hosts": "localhost",
    }
    return {
        name: str(text)
        for value, text in values.items()
        for name in variables_with_value(value) & job.environment.keys()
    }


def _python(job: Job, environment: Mapping[str, str]) -> str:
    """The interpreter of the job, otherwise one of that name, otherwise this one."""
    if job.interpreter is not None:
        return str(job.interpreter)
    name = job.program if job.program.startswith(("/", "python")) else "python"
    path = environment.get("PATH")
    return (shutil.which(name, path=path) if path else None) or sys.executable


def _roots(job: Job) -> Iterable[Path]:
    """The directories of the user's code."""
    return dict.fromkeys((job.folder, job.base, *([job.script.parent] if job.script else [])))
