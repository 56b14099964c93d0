"""How much GPU memory a job uses on the target, from the trace of its run on a simulated GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from epochzero.check.dryrun.attempt import DryRunAttempt
from epochzero.check.dryrun.memory.advice import advise
from epochzero.check.dryrun.memory.estimate import Memory, estimate
from epochzero.check.dryrun.memory.extrapolate import extrapolated
from epochzero.check.dryrun.memory.findings import finding
from epochzero.check.dryrun.memory.history import UNCORRECTED, Correction, PastPeak, correction
from epochzero.check.dryrun.memory.resize import fused
from epochzero.check.dryrun.memory.trace import Mark, Trace, trace_of
from epochzero.check.dryrun.memory.zero import Zero, partitioned
from epochzero.check.dryrun.places import place_of
from epochzero.check.dryrun.records import AllocationRecord, EngineRecord
from epochzero.check.findings import Finding, Unknown
from epochzero.check.launch.model import Job
from epochzero.check.target.model import GPU, Target
from epochzero.errors import InputError


def memory_of(
    runs: Iterable[DryRunAttempt],
    job: Job,
    target: Target,
    environment: Mapping[str, str],
    history: Sequence[PastPeak] = (),
) -> tuple[Memory | None, *tuple[Finding | Unknown, ...]]:
    """The GPU memory of the job, and findings about it.

    Args:
        runs: the dry runs; one of them may be on simulated GPUs.
        job: the job.
        target: the platform.
        environment: environment of the command.
        history: memory use of past runs.
    """
    fake = next((run for run in runs if run.plan.mode == "fake" and not run.unfit), None)
    if fake is None or not target.gpus:
        return (None,)
    trace = trace_of_run(fake, job)
    if isinstance(trace, str):
        return None, Unknown("the memory of the job", trace, job.at)
    gpu = target.gpus[0]
    variables = variables_of(job, target, environment)
    corrected = corrected_by(history, trace, job, gpu)
    memory = estimate(trace, gpu, variables, job.ranks, corrected)
    failing = memory.fit.failing
    path = str(job.base / failing.path) if failing and failing.line else ""
    place = place_of(path, failing.line if failing else 0, job)
    found = finding(memory, place, advise(trace, gpu, variables))
    return (memory, found) if found else (memory,)


def corrected_by(history: Sequence[PastPeak], trace: Trace, job: Job, gpu: GPU) -> Correction:
    """The estimate for the trace of a job, corrected by past runs."""
    if not history:
        return UNCORRECTED
    now = estimate(trace, gpu, processes=job.ranks).allocated.likely
    return correction(history, job, gpu.model, now)


def variables_of(job: Job, target: Target, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that a job sees on the platform."""
    set_for_job = {name: value for name, value in job.environment.items() if value is not None}
    return {**environment, **(target.environment or {}), **set_for_job}


def trace_of_run(run: DryRunAttempt, job: Job) -> Trace | str:
    """The allocations of the job on its GPU, or why they are unknown."""
    try:
        trace = trace_of(line for allocated in run.of(AllocationRecord) for line in allocated.lines)
    except InputError as error:
        return str(error)
    marks = [event.name for event in trace.events if isinstance(event, Mark)]
    # If the time limit ends a loop, the script continues after it, and may finish without a step of its optimizer.
    complete = run.ending == "finished" and not (run.cut and "backward done" in marks)
    # The optimizer allocates its states in its first step, so the next backward pass requires memory in addition to them.
    second = marks[marks.index("step 1") :] if "step 1" in marks else []
    if not complete and "backward done" not in second:
        return "it did not complete a second step on the simulated GPU, which uses the most memory"
    if not trace.events:
        return "it allocates nothing on a GPU"
    sites = (replace(site, path=place_of(site.path, 0, job).path) for site in trace.sites)
    trace = replace(trace, sites=tuple(sites))
    trace = extrapolated(trace)
    if trace.compiled:
        trace = fused(trace)
    for engine in run.of(EngineRecord)[:1]:
        trace = partitioned(trace, Zero.read(engine.config), job.ranks)
    return trace
