"""OpenPBS, PBS Professional and Torque, asked by ``qstat -f``, whose JSON form only some of them have.

Sources: PBS Professional 2022.1 Reference Guide, job states and attributes; Torque 6.1, qstat. None tells who deleted a job.
One that is exiting before its wall time was deleted: PBS reports a preempted job as queued, held or suspended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from epochzero.run.scheduler import SchedulerAllocation
from epochzero.run.scheduler.commands import answer, seconds

_RUNS = frozenset("RSUB")
_QUEUED = frozenset("QHWTM")
_FINISHED = frozenset("FC")
_TIME = "%a %b %d %H:%M:%S %Y"
_SIGNALED = 256
"""Added to the number of the signal that ended a job in its exit status."""
_FIELD = re.compile(r"^\s+([\w.]+) = (.*)$", re.MULTILINE)


def allocation(variables: Mapping[str, str]) -> SchedulerAllocation | None:
    """See `epochzero.run.scheduler.allocation_of`."""
    fields = dict(_FIELD.findall(answer(("qstat", "-f", variables.get("PBS_JOBID", "")))))
    return parse_job(fields, datetime.now()) if fields.get("job_state") else None


def parse_job(fields: Mapping[str, str], now: datetime) -> SchedulerAllocation | None:
    """The allocation that the attributes of ``qstat -f`` describe; None if it is over and they do not show how it ended, as
    those of Slurm's ``qstat``.

    Args:
        fields: name -> text.
        now: in the server's time zone.
    """
    letter = fields["job_state"]
    status = fields.get("Exit_status") or fields.get("exit_status")
    if letter in _FINISHED and status is None:
        return None
    limit = seconds(fields.get("Resource_List.walltime"))
    used = seconds(fields.get("resources_used.walltime")) or 0.0
    # The time used is that of the last poll, minutes ago; the start does not know of suspensions.
    with suppress(ValueError):
        started = datetime.strptime(fields.get("stime") or fields.get("start_time", ""), _TIME)
        used = max(used, (now - started).total_seconds())
    if letter in _RUNS:
        state = "RUNNING"
    elif letter in _QUEUED:
        state = "REQUEUED"
    elif limit is not None and used >= limit:
        state = "TIMEOUT"
    elif status == "0":
        state = "COMPLETED"
    elif status is not None and status.isdigit() and int(status) < _SIGNALED:
        state = "FAILED"
    else:
        state = "CANCELLED"
    left = None if limit is None else limit - used
    return SchedulerAllocation(state, state == "RUNNING", state == "CANCELLED", left)
