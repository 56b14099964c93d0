"""Prepares a job so that its process captures itself, and adds what only the supervisor knows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from epochzero.injected.companions import AT_START, Companion
from epochzero.redact import redact_command
from epochzero.run.records.model import Start
from epochzero.run.replay.child.files import MANIFEST

CAPTURE_FOLDER = "capture"
"""Directory inside the attempt's directory; contains one directory for each process that failed."""
JOB_FILE = "job.json"
_BEGIN = "epochzero.run.replay.child.begin"
CAPTURE_COMPANIONS = (
    Companion(AT_START, f"{_BEGIN}:begin_python"),
    Companion("numpy.random", f"{_BEGIN}:begin_numpy"),
    Companion("torch", f"{_BEGIN}:begin_torch"),
)
"""Companions that capture, and later replay, in the process of the job."""
_VARIABLE = "EPOCHZERO_CAPTURE"
_HASH_SEED = "PYTHONHASHSEED"


def captured_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment of a job with `CAPTURE_COMPANIONS`.

    The order of sets of strings depends on a hash seed that Python draws for each process and does not expose,
    so the seed is chosen here.
    """
    seed = str(int.from_bytes(os.urandom(4), "little"))
    variables = {_HASH_SEED: seed, **environment, _VARIABLE: str(folder / CAPTURE_FOLDER)}
    if variables[_HASH_SEED] == "random":
        variables[_HASH_SEED] = seed
    return variables


def has_capture(folder: Path) -> bool:
    """Whether an attempt left a capture that can be replayed."""
    captures = folder / CAPTURE_FOLDER
    return (captures / JOB_FILE).is_file() and any(captures.glob(f"*/{MANIFEST}"))


def write_job(folder: Path, started: Start, environment: Mapping[str, str]) -> None:
    """Add command, directory and environment to the captures of an attempt, if there are any.

    Args:
        folder: directory of the attempt.
        started: first record of the attempt.
        environment: environment with which the job was started.
    """
    captures = folder / CAPTURE_FOLDER
    if not any(captures.glob(f"*/{MANIFEST}")):
        return
    from epochzero.run.observers.snapshot import repository_of, variables

    shown = {n: v for n, v in variables(environment).items() if not n.startswith("EPOCHZERO_")}
    withheld = sorted(name for name, value in shown.items() if value != environment[name])
    commit, changes = repository_of(Path(started.folder))
    record = {
        "command": redact_command(started.command),
        "folder": started.folder,
        "variables": {n: v for n, v in shown.items() if n not in withheld},
        "withheld": withheld,
        "commit": commit,
        "changes": hashlib.sha256(changes.encode()).hexdigest() if changes else "",
    }
    # A full disk must not fail the job; the capture is lost.
    with suppress(OSError):
        (captures / JOB_FILE).write_text(json.dumps(record), encoding="utf-8")
