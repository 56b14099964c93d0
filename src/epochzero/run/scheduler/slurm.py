"""Slurm, asked by ``scontrol``, which needs no accounting database. Source: scontrol(1), squeue(1), JOB STATE CODES."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from datetime import datetime

from epochzero.run.scheduler import Allocation

_SECONDS = 20.0
"""A controller under load answers late; a job that is being killed has 30 s by default (KillWait)."""
_STEPS_S = 40.0
"""More than the 30 s after which Slurm kills what SIGTERM has not ended (KillWait)."""
_FIELD = re.compile(r"(?:^|\s)([A-Z][\w:/]*)=(.*?)(?=\s[A-Z][\w:/]*=|\s*$)")
_RUNS = frozenset(("RUNNING", "CONFIGURING", "RESIZING", "SUSPENDED", "STOPPED", "SIGNALING"))
_QUEUED = frozenset(("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"))


def allocation(variables: Mapping[str, str]) -> Allocation | None:
    """See `epochzero.run.scheduler.Scheduler`."""
    fields = show_job(variables.get("SLURM_JOB_ID", ""))
    restarts = variables.get("SLURM_RESTART_COUNT", "")
    known = int(restarts) if restarts.isdigit() else 0
    return parse_job(fields, datetime.now(), restarts=known) if fields else None


def end_of_job(number: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """State, exit code and restarts of a job whose epilog runs; none if Slurm does not answer.

    Until the epilog has run Slurm shows the job as COMPLETING, and the exit code is known only when its last
    step has exited.

    Args:
        number: of the job.
        environment: with the search path.
    """
    end = time.monotonic() + _STEPS_S
    # For a job without steps it prints a sentence, with exit code 0.
    while "StepId=" in _scontrol("step", number, environment) and time.monotonic() < end:
        time.sleep(1.0)
    fields = show_job(number, environment)
    if not fields:
        return {}
    code, restarts = fields.get("ExitCode", ""), fields.get("Restarts", "0")
    found = {"State": _state(fields, int(restarts)), "ExitCode": code, "Restarts": restarts}
    left = _seconds_left(fields, datetime.now())
    if left is not None and left > 0:
        # Slurm has counted the restart, and shows the times of the next start.
        return {**found, "State": "REQUEUED", "Restarts": str(int(restarts) - 1)}
    if found["State"] == "CANCELLED" and "COMPLETING" in fields.get("JobState", ""):
        # Nothing else tells a cancelled job from one that died of another signal.
        known = {"0:0": "COMPLETED", "0:9": "CANCELLED", "0:15": "CANCELLED"}.get(code, "FAILED")
        found["State"] = "OUT_OF_MEMORY" if fields.get("Reason") == "OutOfMemory" else known
    return found


def show_job(number: str, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """The fields of ``scontrol show job``; none if Slurm does not answer or does not know the job."""
    line = next(iter(_scontrol("job", number, environment).splitlines()), "")
    return dict(_FIELD.findall(line))


def _scontrol(what: str, number: str, environment: Mapping[str, str] | None) -> str:
    """What ``scontrol show`` prints; nothing if it fails."""
    try:
        done = subprocess.run(
            ["scontrol", "--oneliner", "show", what, number],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if done.returncode else done.stdout


def parse_job(fields: Mapping[str, str], now: datetime, *, restarts: int = 0) -> Allocation:
    """The allocation that the fields of ``scontrol show job`` describe.

    Args:
        fields: name -> text.
        now: in the zone of the controller's times.
        restarts: how often Slurm had requeued the job when it was started.
    """
    state = _state(fields, restarts)
    return Allocation(
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


def _seconds_left(fields: Mapping[str, str], now: datetime) -> float | None:
    try:
        return (datetime.fromisoformat(fields.get("EndTime", "")) - now).total_seconds()
    except ValueError:
        return None
