"""The advice for a scheduler: an exit code, and a file that it can read.

Exit codes are those of sysexits.h where one fits; a scheduler that restarts by exit code needs no
more than these.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from epochzero.errors import InputError
from epochzero.run.records.model import Action, Decision

SCHEMA = "epochzero.advice/1"
EXIT_CODES: Mapping[Action, int] = {"retry": 75, "retry_elsewhere": 76, "stop": 78}
"""EX_TEMPFAIL: try again. 76: try again on another node. EX_CONFIG: nothing changes by itself."""


def advice(decision: Decision, *, job: str, attempt: int, exit_code: int) -> Mapping[str, Any]:
    """The JSON form of a decision for schedulers."""
    return {
        "schema": SCHEMA,
        "job": job,
        "attempt": attempt,
        "exit_code": exit_code,
        "action": decision.action,
        "after_seconds": decision.after,
        "exclude_nodes": list(decision.avoid),
        "risked_gpu_hours": round(decision.risked_gpu_hours, 3),
        "evidence": dict(decision.evidence),
        "reason": decision.reason,
        "policy": decision.policy,
    }


def write_advice(path: Path, values: Mapping[str, Any]) -> None:
    """Replace the file atomically: a reader finds the old one or the new one.

    Raises:
        InputError: it cannot be written.
    """
    text = json.dumps(values, indent=1) + "\n"
    name = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as file:
            name = file.name
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.replace(name, path)
    except OSError as error:
        if name:
            with suppress(OSError):
                os.unlink(name)
        raise InputError(f"{path}: the advice cannot be written: {error.strerror}") from error
