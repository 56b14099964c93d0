"""OpenPBS and PBS Professional, asked by ``qstat -f -F json``. Source: PBS Professional 2022.1 Reference Guide, job states.

PBS does not tell who deleted a job. One that is exiting before its wall time was deleted: PBS reports a preempted job
as queued, held or suspended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochzero.run.scheduler import Allocation
from epochzero.run.scheduler.commands import json_answer, seconds

_RUNS = frozenset("RSUB")
_QUEUED = frozenset("QHWTM")


def allocation(variables: Mapping[str, str]) -> Allocation | None:
    """See `epochzero.run.scheduler.Scheduler`."""
    number = variables.get("PBS_JOBID", "")
    jobs = json_answer(("qstat", "-f", "-x", "-F", "json", number)).get("Jobs") or {}
    fields: Mapping[str, Any] = next(iter(jobs.values()), {})
    return parse_job(fields) if fields.get("job_state") else None


def parse_job(fields: Mapping[str, Any]) -> Allocation:
    """The allocation that a job in the JSON of qstat describes."""
    letter = str(fields["job_state"])
    used = seconds(fields.get("resources_used", {}).get("walltime")) or 0.0
    limit = seconds(fields.get("Resource_List", {}).get("walltime"))
    if letter in _RUNS:
        state = "RUNNING"
    elif letter in _QUEUED:
        state = "REQUEUED"
    elif limit is not None and used >= limit:
        state = "TIMEOUT"
    elif letter == "F" and fields.get("Exit_status") == 0:
        state = "COMPLETED"
    else:
        state = "CANCELLED"
    left = None if limit is None else limit - used
    return Allocation(state, state == "RUNNING", state == "CANCELLED", left)


def memory_of_tasks(_: Mapping[str, str]) -> int:
    """See `epochzero.run.scheduler.Scheduler`; PBS counts a job's memory with that of this process."""
    return 0
