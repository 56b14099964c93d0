"""Sets up a job so that its process captures itself; adds what only the supervisor knows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from epochzero.injected.companions import AT_START, Companion
from epochzero.redact import redact_command
from epochzero.run.model import Started
from epochzero.run.replay.child.files import MANIFEST

CAPTURE_FOLDER = "capture"
"""In the attempt's folder; one folder in it for each process that failed."""
JOB_FILE = "job.json"
_BEGIN = "epochzero.run.replay.child.begin"
CAPTURE_COMPANIONS = (
    Companion(AT_START, f"{_BEGIN}:begin_python"),
    Companion("numpy.random", f"{_BEGIN}:begin_numpy"),
    Companion("torch", f"{_BEGIN}:begin_torch"),
)
"""What captures, and replays, in the process of the job."""
_VARIABLE = "EPOCHZERO_CAPTURE"
_HASH_SEED = "PYTHONHASHSEED"


def captured_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a job with `CAPTURE_COMPANIONS`.

    Sets and dictionaries of strings are in an order that Python draws anew for each process, and that
    cannot be read: it is drawn here.
    """
    seed = str(int.from_bytes(os.urandom(4), "little"))
    variables = {_HASH_SEED: seed, **environment, _VARIABLE: str(folder / CAPTURE_FOLDER)}
    if variables[_HASH_SEED] == "random":
        variables[_HASH_SEED] = seed
    return variables


def has_capture(folder: Path) -> bool:
    """Whether an attempt has left what can be replayed."""
    captures = folder / CAPTURE_FOLDER
    return (captures / JOB_FILE).is_file() and any(captures.glob(f"*/{MANIFEST}"))


def write_job(folder: Path, started: Started, environment: Mapping[str, str]) -> None:
    """Adds to the captures of an attempt what ran, and in what; nothing where there are none.

    Args:
        folder: of the attempt.
        started: its first record.
        environment: of the job, as it was started.
    """
    captures = folder / CAPTURE_FOLDER
    if not any(captures.glob(f"*/{MANIFEST}")):
        return
    from epochzero.run.snapshot import repository_of, variables

    shown = {n: v for n, v in variables(environment).items() if not n.startswith("EPOCHZERO_")}
    withheld = sorted(name for name, value in shown.items() if value != environment[name])
    commit, changes = repository_of(Path(started.folder))
    told = {
        "command": redact_command(started.command),
        "folder": started.folder,
        "variables": {n: v for n, v in shown.items() if n not in withheld},
        "withheld": withheld,
        "commit": commit,
        "changes": hashlib.sha256(changes.encode()).hexdigest() if changes else "",
    }
    # A full disk loses the capture, not the job.
    with suppress(OSError):
        (captures / JOB_FILE).write_text(json.dumps(told), encoding="utf-8")
