"""The inverse questions: which GPU is enough for a job, and how large may an option of it be.

The first is answered by the trace of one run, the second by runs with other values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from epochzero.check.dryrun.attempt import DryRunAttempt, DryRunPlan, Hear, attempt
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.gpu_memory import corrected_by, trace_of_run, variables_of
from epochzero.check.dryrun.memory.fit import Largest, largest, smallest_gpu
from epochzero.check.dryrun.memory.history import UNCORRECTED, PastPeak
from epochzero.check.dryrun.memory.trace import Trace
from epochzero.check.dryrun.records import Tries
from epochzero.check.findings import Unknown
from epochzero.check.job.model import Job
from epochzero.check.program.model import Program
from epochzero.check.program.parsers.model import OptionSpec, Parsed
from epochzero.check.program.values import Constant
from epochzero.check.target.model import GPU, Target


@dataclass(frozen=True, slots=True)
class Option:
    """A numeric option of a job.

    Attributes:
        flag: as the command line has it: ``--batch-size``, or ``train.batch`` for Hydra.
        value: that it has now.
    """

    flag: str
    value: int

    def given(self, job: Job, value: int) -> Job:
        """The job with another value; of an option that is given twice the last counts."""
        return replace(job, argv=(*job.argv, f"{self.flag}={value}"))


def option_of(program: Program, name: str) -> Option | Unknown:
    """The option of a program's parsers by its name, with or without dashes.

    Its value must be known: as the command line has it, else by its default.
    """
    asked = _plain(name)
    for parsed in program.parsed:
        for option in parsed.spec.options:
            if asked in map(_plain, _names(option)):
                return _told(parsed, option) or Unknown(
                    f"the largest {name}", "its value is no positive number", program.job.at
                )
    reason = "the job has no parser of such an option that can be read"
    return Unknown(f"the largest {name}", reason, program.job.at)


def _names(option: OptionSpec) -> tuple[str, ...]:
    dest = option.keywords.get("dest")
    return (*option.flags, str(dest.value)) if isinstance(dest, Constant) else option.flags


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _told(parsed: Parsed, option: OptionSpec) -> Option | None:
    """The option with its value; None where that is no whole number above 0."""
    names = set(map(_plain, _names(option)))
    values = (value for name, value in parsed.values.items() if _plain(name) in names)
    value = next((one.value for one in values if isinstance(one, Constant)), None)
    if not isinstance(value, int) or value < 1:
        return None
    longest = max(option.flags, key=len)
    bare = longest.startswith("-") or parsed.spec.kind == "hydra"
    return Option(longest if bare else f"--{longest}", value)


def smallest_of(
    runs: Sequence[DryRunAttempt], job: Job, gpu: GPU, history: Sequence[PastPeak] = ()
) -> GPU | None:
    """The preset with the least memory that is enough for a job that was run as on a GPU."""
    trace = _trace(runs, job)
    if trace is None:
        return None
    corrected = corrected_by(history, trace, job, gpu)
    return smallest_gpu(trace, gpu, job.ranks, corrected)


def largest_of(
    job: Job,
    option: Option,
    known: Sequence[DryRunAttempt],
    plan: DryRunPlan,
    target: Target,
    limits: Limits,
    environment: Mapping[str, str],
    hear: Hear,
    history: Sequence[PastPeak] = (),
) -> Largest:
    """The largest value with which the job fits the first of its GPUs.

    Args:
        job: it.
        option: with the value that it has in the job.
        known: the runs of the job as it is, which are not made again.
        plan: of the one on pretended GPUs.
        target: the platform.
        limits: of each run.
        environment: variables that are set where the command would be given.
        hear: is told each value that is tried, and what its run tells.
        history: what past runs took.
    """

    def traced(value: int) -> Trace | None:
        hear(Tries(option.flag, value))
        if value == option.value:
            return _trace(known, job)
        other, once = option.given(job, value), replace(plan, resume=False)
        return _trace([attempt(other, once, limits, environment, hear)], job)

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


def _trace(runs: Sequence[DryRunAttempt], job: Job) -> Trace | None:
    """What a job allocates in the first of its runs on a pretended GPU; None where that is not known."""
    found = next((trace_of_run(run, job) for run in runs if run.plan.mode == "fake"), None)
    return found if isinstance(found, Trace) else None
