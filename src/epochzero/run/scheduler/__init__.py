"""Schedulers: what each knows of the allocation that a job runs in. One module each, with a function ``allocation``.

A job that its scheduler has ended must not be started again in the same allocation, and only the scheduler
knows whether a signal came from a person, a time limit or a preemption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

# A variable that only this scheduler sets -> the module that asks it.
_SCHEDULERS = {
    "SLURM_JOB_ID": "epochzero.run.scheduler.slurm",
    "LSB_JOBID": "epochzero.run.scheduler.lsf",
    "PBS_JOBID": "epochzero.run.scheduler.pbs",
    "KUBERNETES_SERVICE_HOST": "epochzero.run.scheduler.kubernetes",
}


@dataclass(frozen=True, slots=True)
class SchedulerAllocation:
    """What a scheduler knows of an allocation now.

    Attributes:
        state: in the words of Slurm, such as RUNNING, CANCELLED, TIMEOUT or PREEMPTED.
        runs: whether it is still the job's own, so that the job could be started again in it.
        cancelled: whether a person or an administrator has cancelled it.
        seconds_left: until its time limit; None where there is none.
    """

    state: str
    runs: bool
    cancelled: bool
    seconds_left: float | None = None


def allocation_of(variables: Mapping[str, str]) -> SchedulerAllocation | None:
    """The allocation that a job's variables name; None if its scheduler has no module or does not answer.

    Args:
        variables: of the job (`epochzero.run.records.model.Start.scheduler`).
    """
    module = next((name for known, name in _SCHEDULERS.items() if variables.get(known)), None)
    if module is None:
        return None
    found: SchedulerAllocation | None = import_module(module).allocation(variables)
    return found
