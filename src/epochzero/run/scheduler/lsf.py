"""LSF, asked by ``bjobs``. Source: IBM Spectrum LSF 10.1, bjobs ``-o`` and ``-json``, termination reasons of bhist."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from epochzero.run.scheduler import SchedulerAllocation
from epochzero.run.scheduler.commands import answer, seconds

_FIELDS = "jobid stat exit_code exit_reason time_left"
_REASON = re.compile(r"TERM_\w+")
# Job states, and the termination reasons that precede them -> states in the words of Slurm, which the rest of the project knows.
_STATES = {
    "RUN": "RUNNING", "SSUSP": "RUNNING", "USUSP": "RUNNING", "PROV": "RUNNING",
    "PEND": "REQUEUED", "PSUSP": "REQUEUED", "WAIT": "REQUEUED", "DONE": "COMPLETED", "ZOMBI": "NODE_FAIL",
    "TERM_OWNER": "CANCELLED", "TERM_ADMIN": "CANCELLED", "TERM_FORCE_OWNER": "CANCELLED",
    "TERM_FORCE_ADMIN": "CANCELLED", "TERM_RUNLIMIT": "TIMEOUT", "TERM_DEADLINE": "TIMEOUT",
    "TERM_WINDOW": "TIMEOUT", "TERM_CPULIMIT": "TIMEOUT", "TERM_MEMLIMIT": "OUT_OF_MEMORY",
    "TERM_SWAP": "OUT_OF_MEMORY", "TERM_PREEMPT": "PREEMPTED", "TERM_LOAD": "PREEMPTED",
    "TERM_REQUEUE_OWNER": "REQUEUED", "TERM_REQUEUE_ADMIN": "REQUEUED", "TERM_SLURM": "CANCELLED",
    "TERM_ZOMBIE": "NODE_FAIL", "TERM_BUCKET_KILL": "CANCELLED", "TERM_CHKPNT": "CANCELLED",
    "TERM_ORPHAN_SYSTEM": "CANCELLED", "TERM_RC_RECLAIM": "PREEMPTED",
}  # fmt: skip


def allocation(variables: Mapping[str, str]) -> SchedulerAllocation | None:
    """See `epochzero.run.scheduler.allocation_of`."""
    number, index = variables.get("LSB_JOBID", ""), variables.get("LSB_JOBINDEX", "0")
    name = f"{number}[{index}]" if index not in ("", "0") else number
    with suppress(ValueError, KeyError, IndexError, TypeError):
        record = json.loads(answer(("bjobs", "-json", "-o", _FIELDS, name)))["RECORDS"][0]
        return parse_job(record) if "STAT" in record else None
    return None


def parse_job(fields: Mapping[str, Any]) -> SchedulerAllocation:
    """The allocation that a record of ``bjobs -json`` describes."""
    # A job that bkill has just signaled is RUN with a reason, until its processes are gone.
    reason = _REASON.search(str(fields.get("EXIT_REASON", "")))
    state = _STATES.get(reason[0] if reason else str(fields.get("STAT", "")), "FAILED")
    # Such as "0:42 L"; E and X are of estimates.
    left = str(fields.get("TIME_LEFT", "")).split()
    return SchedulerAllocation(
        state=state,
        runs=state == "RUNNING",
        cancelled=state == "CANCELLED",
        seconds_left=seconds(left[0]) if left[1:] == ["L"] else None,
    )
