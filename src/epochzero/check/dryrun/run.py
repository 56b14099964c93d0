"""Runs a job dry, once or twice.

What failed after a loop was shortened is tried a second time with whole loops, as far as the time
goes: an error is only what surely fails.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from epochzero.check.dryrun.contain.model import Ended, Limits
from epochzero.check.dryrun.findings import Failure, failure, nan_loss, place_of
from epochzero.check.dryrun.memory.advice import advise
from epochzero.check.dryrun.memory.estimate import Memory, estimate
from epochzero.check.dryrun.memory.findings import finding
from epochzero.check.dryrun.memory.trace import Trace, trace_of
from epochzero.check.dryrun.model import PARTS, Assumption, DryRun, Part
from epochzero.check.dryrun.process import RECORDS_DESCRIPTOR, SPEC_DESCRIPTOR, run_contained
from epochzero.check.dryrun.records import (
    Allocated,
    Assumed,
    NaN,
    Raised,
    Reached,
    Record,
    Shortened,
    Site,
    read,
)
from epochzero.check.dryrun.records import Ended as Finished
from epochzero.check.findings import Finding, Unknown
from epochzero.check.job.model import Job
from epochzero.check.target.model import Target
from epochzero.errors import InputError

__all__ = ["dry_run"]

CHILD = Path(__file__).parent / "child" / "__main__.py"
SECOND_S = 20.0
_ALONE = {
    "GROUP_RANK": "0",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29511",
    "NODE_RANK": "0",
    "RANK": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_NTASKS": "1",
    "SLURM_PROCID": "0",
    "TORCHELASTIC_MAX_RESTARTS": "0",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_RUN_ID": "dry",
    "WORLD_SIZE": "1",
}
"""What a launcher sets, for the one process of a real dry run."""

Mode = Literal["real", "fake"]


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the child, with what it told."""

    ended: Ended
    records: tuple[Record, ...]

    def last(self, kind: type[Record]) -> Record | None:
        """The last record of a kind."""
        return next((one for one in reversed(self.records) if isinstance(one, kind)), None)

    @property
    def raised(self) -> Raised | None:
        """The error that ended the script."""
        found = self.last(Raised)
        return found if isinstance(found, Raised) else None

    @property
    def finished(self) -> Finished | None:
        """How the script ended without an error."""
        found = self.last(Finished)
        return found if isinstance(found, Finished) else None

    @property
    def ending(self) -> Literal["finished", "failed", "time", "killed"]:
        """How it ended, in a word."""
        if self.ended.limit == "time" or (self.finished and self.finished.why == "time"):
            return "time"
        if self.ended.limit or self.ended.signal:
            return "killed"
        return "failed" if self.raised or self.ended.code else "finished"


def dry_run(
    job: Job,
    target: Target,
    limits: Limits,
    *,
    environment: Mapping[str, str],
    mode: Mode = "real",
    first: bool = True,
) -> DryRun:
    """Run a job dry and say how far it came and what would fail.

    Args:
        job: it; its script must be one that can be read.
        target: the platform.
        limits: of the run; a second one, where it is needed, takes `SECOND_S` at most.
        environment: variables that are set where the command would be given.
        mode: with real tensors, or with the shapes that the platform's GPUs would see.
        first: no other job of the submission comes before it.
    """
    run = _run(job, target, limits, environment, mode, whole=False)
    certain = run.raised is None or run.raised.certain
    seconds = run.ended.seconds
    if not certain:
        shorter = replace(limits, seconds=min(limits.seconds, SECOND_S))
        again = _run(job, target, shorter, environment, mode, whole=True)
        seconds += again.ended.seconds
        if again.ending != "time":
            run, certain = replace(again, records=_both(run, again)), True
    answers = list(_answers(run, job, target, mode, certain, first))
    memory = None
    if mode == "fake":
        memory, *told = _memory(run, job, target, environment)
        answers += told
    return DryRun(
        job=job.command,
        mode=mode,
        ended=run.ending,
        parts=tuple(_parts(run.records, job)),
        findings=tuple(one for one in answers if isinstance(one, Finding)),
        unknowns=tuple(one for one in answers if isinstance(one, Unknown)),
        assumptions=tuple(_assumptions(run.records, job)),
        seconds=seconds,
        memory=memory,
    )


_OF_ONE_RUN = (Allocated, Finished, Raised, Shortened)


def _both(first: _Run, again: _Run) -> tuple[Record, ...]:
    """What was learned in two runs; how it ended is told by the second alone."""
    kept = [one for one in first.records if not isinstance(one, _OF_ONE_RUN)]
    return (*kept, *again.records)


# -- The child ---------------------------------------------------------------------------------


def _run(
    job: Job,
    target: Target,
    limits: Limits,
    environment: Mapping[str, str],
    mode: Mode,
    *,
    whole: bool,
) -> _Run:
    given = {**environment, **{name: v for name, v in job.environment.items() if v is not None}}
    alone = {name: value for name, value in _ALONE.items() if name in _launched(job)}
    spec = {
        "script": str(job.script) if job.script and not job.module else None,
        "module": job.module,
        "argv": job.argv,
        "roots": [str(folder) for folder in _roots(job)],
        "mode": mode,
        "gpus": [
            {"model": g.model, "memory_bytes": g.memory_bytes, "capability": g.capability or (8, 0)}
            for g in target.gpus or ()
        ],
        "world": {"size": 1, "rank": 0, "local_size": 1},
        "seconds": limits.seconds,
        "whole": whole,
    }
    ended = run_contained(
        [_python(job, given), str(CHILD), str(SPEC_DESCRIPTOR), str(RECORDS_DESCRIPTOR)],
        folder=job.folder,
        environment=given | alone,
        limits=limits,
        spec=json.dumps(spec).encode(),
    )
    return _Run(ended, tuple(read(ended.records)))


def _launched(job: Job) -> set[str]:
    """The variables that the job's launchers set, torchrun's restarts among them."""
    restarts = {name for name in _ALONE if "TORCHELASTIC" in name and "torchrun" in job.launchers}
    return restarts | job.environment.keys()


def _python(job: Job, environment: Mapping[str, str]) -> str:
    """The job's interpreter, as its command names it; this one where there is none of the name."""
    name = job.program if job.program.startswith(("/", "python")) else "python"
    path = environment.get("PATH")
    return (shutil.which(name, path=path) if path else None) or sys.executable


def _roots(job: Job) -> Iterable[Path]:
    """The folders whose code is the user's."""
    return dict.fromkeys((job.folder, job.base, *([job.script.parent] if job.script else [])))


# -- What it told ------------------------------------------------------------------------------


def _answers(
    run: _Run, job: Job, target: Target, mode: Mode, certain: bool, first: bool
) -> Iterable[Finding | Unknown]:
    if run.ending != "finished" and not (run.finished and run.ending == "time"):
        yield failure(Failure(run.raised, run.ended, mode, certain, first), job, target)
    elif run.ending == "time":
        yield Unknown("the rest of the job", "the time of the dry run was over", job.at)
    told = {(one.path, one.line): one for one in run.records if isinstance(one, NaN)}
    yield from (nan_loss(one, job) for one in told.values())


def _memory(
    run: _Run, job: Job, target: Target, environment: Mapping[str, str]
) -> tuple[Memory | None, *tuple[Finding | Unknown, ...]]:
    """What the job takes of its GPU's memory, and what to tell of it."""
    trace = _trace(run.records, job)
    if isinstance(trace, str) or not target.gpus:
        reason = trace if isinstance(trace, str) else "the target has no GPU"
        return None, Unknown("the memory of the job", reason, job.at)
    gpu = target.gpus[0]
    set_for_job = {name: value for name, value in job.environment.items() if value is not None}
    variables = {**environment, **(target.environment or {}), **set_for_job}
    memory = estimate(trace, gpu, variables)
    failing = memory.fit.failing
    path = str(job.base / failing.path) if failing and failing.line else ""
    place = place_of(path, failing.line if failing else 0, job)
    found = finding(memory, place, advise(trace, gpu, variables))
    return (memory, found) if found else (memory,)


def _trace(records: Sequence[Record], job: Job) -> Trace | str:
    """What the job allocates on its GPU; why it is not known."""
    told = [one for one in records if isinstance(one, Allocated)]
    try:
        trace = trace_of(line for one in told for line in one.lines)
    except InputError as error:
        return str(error)
    if not trace.events:
        return "it puts nothing on a GPU"
    sites = (replace(one, path=place_of(one.path, 0, job).path) for one in trace.sites)
    return replace(trace, sites=tuple(sites))


def _parts(records: Sequence[Record], job: Job) -> Iterable[Part]:
    reached = [one for one in records if isinstance(one, Reached)]
    sites = {one for one in records if isinstance(one, Site)}
    for name in PARTS:
        if first := next((one for one in reached if one.how == name), None):
            yield Part(name, first.phase, place_of(first.path, first.line, job), reached=True)
        lines = {(one.path, one.line) for one in reached if one.how == name}
        for site in sorted(sites, key=lambda one: (one.path, one.line)):
            spans = range(site.line, site.end + 1)
            if site.part == name and not any(p == site.path and n in spans for p, n in lines):
                place = place_of(site.path, site.line, job)
                yield Part(name, "unknown", place, reached=False, condition=site.condition)


def _assumptions(records: Sequence[Record], job: Job) -> Iterable[Assumption]:
    told: dict[tuple[str, str, int], int] = {}
    for one in records:
        if isinstance(one, Assumed):
            key = (one.what, one.path, one.line)
            told[key] = told.get(key, 0) + one.count
        elif isinstance(one, Shortened):
            total = f" of {one.total}" if one.total else ""
            told[f"the loop runs a few{total} iterations", one.path, one.line] = 1
    for (what, path, line), count in told.items():
        yield Assumption(what, place_of(path, line, job), count)
