"""Slurm, asked by ``scontrol`` and ``sstat``, which need no accounting database.

Sources: scontrol(1); squeue(1), JOB STATE CODES; sstat(1), TRESUsageInTot.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from epochzero.run.scheduler import SchedulerAllocation
from epochzero.run.scheduler.commands import answer

_COMPLETING_S = 3600.0
"""A node whose processes cannot be killed keeps a job COMPLETING until an administrator acts."""
_POLL_S = 2.0
"""Slurm forgets a completed job after MinJobAge, 300 s by default."""
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGT]?)")
_FIELD = re.compile(r"(?:^|\s)([A-Z][\w:/]*)=(.*?)(?=\s[A-Z][\w:/]*=|\s*$)")
# Fields of sacct -> those of `scontrol show job`.
_OF_SACCT = {
    "ExitCode": "ExitCode", "JobName": "JobName", "WorkDir": "WorkDir", "AllocTRES": "TRES",
    "StdOut": "StdOut", "StdErr": "StdErr",
}  # fmt: skip
_RUNS = frozenset(("RUNNING", "CONFIGURING", "RESIZING", "SUSPENDED", "STOPPED", "SIGNALING"))
_QUEUED = frozenset(("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"))


def allocation(variables: Mapping[str, str]) -> SchedulerAllocation | None:
    """See `epochzero.run.scheduler.allocation_of`."""
    fields = show_job(variables.get("SLURM_JOB_ID", ""))
    restarts = variables.get("SLURM_RESTART_COUNT", "")
    known = int(restarts) if restarts.isdigit() else 0
    return parse_job(fields, datetime.now(), restarts=known) if fields else None


def memory_of_tasks(variables: Mapping[str, str]) -> int:
    """Resident bytes of all tasks of a job's steps now; 0 if Slurm does not gather them, or does not answer.

    Other schedulers start no tasks elsewhere, and count them with the process that runs here.

    Args:
        variables: of the job (`epochzero.run.records.model.Start.scheduler`).
    """
    number = variables.get("SLURM_JOB_ID")
    if not number:
        return 0
    words = ("sstat", "--allsteps", "--noheader", "--parsable2", "--format=JobID,TRESUsageInTot")
    return sum(map(_tasks_memory, answer((*words, f"--jobs={number}")).splitlines()))


def _tasks_memory(line: str) -> int:
    """Of a line such as ``4242.0|cpu=00:00:04,energy=0,fs/disk=87,mem=5120K,pages=1,vmem=9M``."""
    step, _, usage = line.partition("|")
    # The batch step is this process's own tree.
    if step.endswith((".batch", ".extern")):
        return 0
    found = _MEMORY.search(usage)
    return int(float(found[1]) * 1024 ** "_KMGT".find(found[2] or "_")) if found else 0


def end_of_job(number: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """How a job whose epilog runs ended, in the fields of sacct; empty if Slurm does not answer.

    Until the epilog has returned Slurm reports COMPLETING for a job that it does not requeue, with the exit
    code 0:0 as long as its processes are being killed.

    Args:
        number: Slurm's job ID.
        environment: environment with the search path.
    """
    fields = show_job(number, environment)
    if not fields:
        return {}
    found = {ours: fields[name] for ours, name in _OF_SACCT.items() if fields.get(name)}
    restarts = int(fields.get("Restarts", "0"))
    state = _state(fields, restarts)
    left = _seconds_left(fields, datetime.now())
    if state == "REQUEUED" or (left is not None and left > 0):
        # Slurm has already counted the restart and reports the times of the next start.
        return {**found, "State": "REQUEUED", "Restarts": str(restarts - 1)}
    if "COMPLETING" in fields.get("JobState", ""):
        state = "COMPLETING"
    return {**found, "State": state, "Restarts": str(restarts), **_times(fields)}


def wait_until_completed(number: str, environment: Mapping[str, str]) -> None:
    """Waits until Slurm has completed a job: all its processes are gone and all its epilogs have returned.

    It also returns when Slurm does not answer, and after one hour.

    Args:
        number: Slurm's job ID.
        environment: environment with the search path.
    """
    end = time.monotonic() + _COMPLETING_S
    while "COMPLETING" in show_job(number, environment).get("JobState", ""):
        if time.monotonic() > end:
            return
        time.sleep(_POLL_S)


def show_job(number: str, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """The fields of ``scontrol show job``; empty if Slurm does not answer or does not know the job."""
    lines = answer(("scontrol", "--oneliner", "show", "job", number), environment)
    return dict(_FIELD.findall(lines.partition("\n")[0]))


def parse_job(
    fields: Mapping[str, str], now: datetime, *, restarts: int = 0
) -> SchedulerAllocation:
    """The allocation that the fields of ``scontrol show job`` describe.

    Args:
        fields: name -> text.
        now: in the zone of the controller's times.
        restarts: how often Slurm had requeued the job when it was started.
    """
    state = _state(fields, restarts)
    return SchedulerAllocation(
        state=state,
        runs=state in _RUNS,
        cancelled=state == "CANCELLED",
        seconds_left=_seconds_left(fields, now),
    )


def _state(fields: Mapping[str, str], restarts: int) -> str:
    """The job's own state. While its processes are killed Slurm shows only COMPLETING."""
    states = fields.get("JobState", "").split(",")
    own = next((state for state in states if state and state != "COMPLETING"), "")
    requeued = fields.get("Restarts", "")
    # By a preemption, a failed node, or `scontrol requeue`: which of these, only accounting knows.
    if own in _QUEUED or (requeued.isdigit() and int(requeued) > restarts):
        return "REQUEUED"
    if own:
        return own
    if fields.get("Reason") == "TimeLimit":
        return "TIMEOUT"
    return "NODE_FAIL" if fields.get("Reason") == "NodeDown" else "CANCELLED"


def _times(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Start and end of a job, with the time zone that scontrol omits."""
    times = {}
    for name in ("Start", "End"):
        with suppress(ValueError):
            local = datetime.fromisoformat(fields.get(f"{name}Time", ""))
            times[name] = local.astimezone().isoformat()
    return times


def _seconds_left(fields: Mapping[str, str], now: datetime) -> float | None:
    try:
        return (datetime.fromisoformat(fields.get("EndTime", "")) - now).total_seconds()
    except ValueError:
        return None
