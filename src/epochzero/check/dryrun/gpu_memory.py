"""How much of the target's GPU memory a job takes, by the trace of its run on a pretended one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from epochzero.check.dryrun.attempt import DryRunAttempt
from epochzero.check.dryrun.findings import place_of
from epochzero.check.dryrun.memory.advice import advise
from epochzero.check.dryrun.memory.estimate import Memory, estimate
from epochzero.check.dryrun.memory.extrapolate import extrapolated
from epochzero.check.dryrun.memory.findings import finding
from epochzero.check.dryrun.memory.history import UNCORRECTED, Correction, PastPeak, correction
from epochzero.check.dryrun.memory.resize import fused
from epochzero.check.dryrun.memory.trace import Mark, Trace, trace_of
from epochzero.check.dryrun.memory.zero import Zero, partitioned
from epochzero.check.dryrun.records import Allocated, Configured
from epochzero.check.findings import Finding, Unknown
from epochzero.check.job.model import Job
from epochzero.check.target.model import GPU, Target
from epochzero.errors import InputError


def memory_of(
    runs: Iterable[DryRunAttempt],
    job: Job,
    target: Target,
    environment: Mapping[str, str],
    history: Sequence[PastPeak] = (),
) -> tuple[Memory | None, *tuple[Finding | Unknown, ...]]:
    """What the job takes of its GPU's memory, and what to tell of it.

    Args:
        runs: one of them on pretended GPUs, if there was one.
        job: it.
        target: the platform.
        environment: variables that are set where the command would be given.
        history: what past runs took.
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
    """What past runs make of the estimate for a job's trace."""
    if not history:
        return UNCORRECTED
    now = estimate(trace, gpu, processes=job.ranks).allocated.likely
    return correction(history, job, gpu.model, now)


def variables_of(job: Job, target: Target, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that a job sees on the platform."""
    set_for_job = {name: value for name, value in job.environment.items() if value is not None}
    return {**environment, **(target.environment or {}), **set_for_job}


def trace_of_run(run: DryRunAttempt, job: Job) -> Trace | str:
    """What the job allocates on its GPU; why it is not known."""
    try:
        trace = trace_of(line for one in run.of(Allocated) for line in one.lines)
    except InputError as error:
        return str(error)
    if run.ending != "finished" and not _is_whole(trace):
        return "it did not come through a second step on the pretended GPU, which takes the most"
    if not trace.events:
        return "it puts nothing on a GPU"
    sites = (replace(one, path=place_of(one.path, 0, job).path) for one in trace.sites)
    trace = replace(trace, sites=tuple(sites))
    trace = extrapolated(trace)
    if trace.compiled:
        trace = fused(trace)
    for engine in run.of(Configured)[:1]:
        trace = partitioned(trace, Zero.read(engine.config), job.ranks)
    return trace


def _is_whole(trace: Trace) -> bool:
    """Whether a backward pass was seen while the optimizer's states were held."""
    marks = [event.name for event in trace.events if isinstance(event, Mark)]
    return "step 1" in marks and "backward done" in marks[marks.index("step 1") :]
