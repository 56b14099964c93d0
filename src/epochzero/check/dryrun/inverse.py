"""Questions beyond the job as given: which GPU is sufficient, how large may an option be, what if it were divided.

The trace of one run answers the first and the last question, runs with other values the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from epochzero.check.dryrun.attempt import DryRunAttempt, DryRunPlan, OnRecord, attempt
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.gpu_memory import corrected_by, trace_of_run, variables_of
from epochzero.check.dryrun.memory.fit import Largest, largest, smallest_gpu
from epochzero.check.dryrun.memory.history import UNCORRECTED, PastPeak
from epochzero.check.dryrun.memory.layout import Layout, LayoutMemory, divided
from epochzero.check.dryrun.memory.trace import Trace
from epochzero.check.dryrun.records import TrialRecord
from epochzero.check.findings import Unknown
from epochzero.check.launch.model import Job
from epochzero.check.program.model import Program
from epochzero.check.program.parsers.model import OptionSpec, ParsedCommand
from epochzero.check.program.values import Constant
from epochzero.check.target.model import GPU, Target


@dataclass(frozen=True, slots=True)
class NumericOption:
    """A numeric option of a job.

    Attributes:
        flag: as on the command line: ``--batch-size``, or ``train.batch`` for Hydra.
        value: its current value.
    """

    flag: str
    value: int

    def given(self, job: Job, value: int) -> Job:
        """The job with another value; if an option is repeated, the last one counts."""
        return replace(job, argv=(*job.argv, f"{self.flag}={value}"))


def option_of(program: Program, name: str) -> NumericOption | Unknown:
    """The option of a program's parsers by its name, with or without dashes.

    Its value must be known, from the command line or from its default.
    """
    asked = _plain(name)
    for parsed in program.parsed:
        for option in parsed.spec.options:
            if asked in map(_plain, _names(option)):
                return _told(parsed, option) or Unknown(
                    f"the largest {name}", "its value is not a positive number", program.job.at
                )
    reason = "no parser of the job that can be analyzed defines this option"
    return Unknown(f"the largest {name}", reason, program.job.at)


def _names(option: OptionSpec) -> tuple[str, ...]:
    dest = option.keywords.get("dest")
    return (*option.flags, str(dest.value)) if isinstance(dest, Constant) else option.flags


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _told(parsed: ParsedCommand, option: OptionSpec) -> NumericOption | None:
    """The option with its value; None if that is not a positive integer."""
    names = set(map(_plain, _names(option)))
    values = (value for name, value in parsed.values.items() if _plain(name) in names)
    value = next((v.value for v in values if isinstance(v, Constant)), None)
    if not isinstance(value, int) or value < 1:
        return None
    longest = max(option.flags, key=len)
    bare = longest.startswith("-") or parsed.spec.kind == "hydra"
    return NumericOption(longest if bare else f"--{longest}", value)


def smallest_of(
    runs: Sequence[DryRunAttempt], job: Job, gpu: GPU, history: Sequence[PastPeak] = ()
) -> GPU | None:
    """The preset with the least memory that is sufficient for a job that ran on a simulated GPU."""
    trace = _trace(runs, job)
    if trace is None:
        return None
    corrected = corrected_by(history, trace, job, gpu)
    return smallest_gpu(trace, gpu, job.ranks, corrected)


def largest_of(
    job: Job,
    option: NumericOption,
    known: Sequence[DryRunAttempt],
    plan: DryRunPlan,
    target: Target,
    limits: Limits,
    environment: Mapping[str, str],
    on_record: OnRecord,
    history: Sequence[PastPeak] = (),
) -> Largest:
    """The largest value with which the job fits on the first of its GPUs.

    Args:
        job: the job.
        option: the option with its current value.
        known: the runs of the unchanged job, which are not repeated.
        plan: plan of the run on simulated GPUs.
        target: the platform.
        limits: limits of each run.
        environment: environment of the command.
        on_record: called with each value that is tried, and with the records of its run.
        history: memory use of past runs.
    """

    def traced(value: int) -> Trace | None:
        on_record(TrialRecord(option.flag, value))
        if value == option.value:
            return _trace(known, job)
        other, once = option.given(job, value), replace(plan, resume=False)
        return _trace([attempt(other, once, limits, environment, on_record)], job)

    now = _trace(known, job)
    gpu = plan.gpus[0]
    return largest(
        option.flag,
        traced,
        option.value,
        gpu,
        variables_of(job, target, environment),
        processes=job.ranks,
        corrected=corrected_by(history, now, job, gpu) if now else UNCORRECTED,
    )


def layout_of(
    runs: Sequence[DryRunAttempt],
    job: Job,
    layout: Layout,
    gpu: GPU,
    target: Target,
    environment: Mapping[str, str],
    history: Sequence[PastPeak] = (),
) -> LayoutMemory | Unknown:
    """The memory of a rank if a job that ran on a simulated GPU were divided by a layout."""
    trace = _trace(runs, job)
    reason: LayoutMemory | str = "the memory of the job is unknown"
    if trace is not None:
        corrected = corrected_by(history, trace, job, gpu)
        variables = variables_of(job, target, environment)
        reason = divided(trace, layout, gpu, variables, corrected)
    what = f"the memory of a rank with {layout}"
    return Unknown(what, reason, job.at) if isinstance(reason, str) else reason


def _trace(runs: Sequence[DryRunAttempt], job: Job) -> Trace | None:
    """The allocations of the first run on a simulated GPU; None if they are unknown."""
    found = next((trace_of_run(run, job) for run in runs if run.plan.mode == "fake"), None)
    return found if isinstance(found, Trace) else None
