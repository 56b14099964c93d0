"""Schedulers: what each knows of the allocation that a job runs in. One module each, one interface.

A job that its scheduler has ended must not be started again in the same allocation, and only the scheduler
knows whether a signal came from a person, a time limit or a preemption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

__all__ = ["Allocation", "Scheduler", "allocation_of", "memory_of_tasks"]

# A variable that only this scheduler sets -> the module that asks it.
_SCHEDULERS = {
    "SLURM_JOB_ID": "epochzero.run.scheduler.slurm",
    "LSB_JOBID": "epochzero.run.scheduler.lsf",
    "PBS_JOBID": "epochzero.run.scheduler.pbs",
    "KUBERNETES_SERVICE_HOST": "epochzero.run.scheduler.kubernetes",
}


@dataclass(frozen=True, slots=True)
class Allocation:
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


class Scheduler(Protocol):
    """A module of this package."""

    def allocation(self, variables: Mapping[str, str]) -> Allocation | None:
        """The allocation that these variables of a job name; None if it cannot be asked."""
        ...

    def memory_of_tasks(self, variables: Mapping[str, str]) -> int:
        """Resident bytes of the job's tasks that its launcher did not start as its own children; 0 if unknown."""
        ...


def memory_of_tasks(variables: Mapping[str, str]) -> int:
    """See `Scheduler.memory_of_tasks`; 0 for a scheduler without a module.

    Args:
        variables: of the job (`epochzero.run.records.model.Started.scheduler`).
    """
    scheduler = _scheduler(variables)
    return scheduler.memory_of_tasks(variables) if scheduler is not None else 0


def allocation_of(variables: Mapping[str, str]) -> Allocation | None:
    """The allocation that a job's variables name; None if its scheduler has no module or does not answer.

    Args:
        variables: of the job (`epochzero.run.records.model.Started.scheduler`).
    """
    scheduler = _scheduler(variables)
    return scheduler.allocation(variables) if scheduler is not None else None


def _scheduler(variables: Mapping[str, str]) -> Scheduler | None:
    known = (module for variable, module in _SCHEDULERS.items() if variables.get(variable))
    module = next(known, None)
    return cast(Scheduler, import_module(module)) if module is not None else None
