"""Which job an attempt is of: one identity for all its attempts, ranks and nodes.

A job that no scheduler knows gets a new identity, sortable by time. Under a scheduler every rank
makes the same one of the scheduler's own number, without talking to the others. It is given on to
what the job starts in `JOB_VARIABLE`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path, PurePath

JOB_VARIABLE = "EPOCHZERO_JOB"
ATTEMPT_VARIABLE = "EPOCHZERO_ATTEMPT"
CHECKPOINT_VARIABLE = "EPOCHZERO_CHECKPOINT"
"""Of an attempt after the first: the last checkpoint that the job has printed and that exists."""
PROGRESS_VARIABLE = "EPOCHZERO_PROGRESS"
PROGRESS_FILE = "progress.jsonl"
"""Names the file in which the job reports its progress, and its name in the attempt's directory."""
_LENGTH = 14
_JOB = re.compile(r"[0-9A-Za-z_-]{1,64}")


def new_job() -> str:
    """A new identity: 8 hexadecimal digits of the time in seconds, 6 random ones."""
    return f"{int(time.time()):08x}{os.urandom(3).hex()}"


def derived_job(*parts: str) -> str:
    """The identity that everyone makes who knows the same parts, such as a scheduler's number."""
    # Most jobs have no scheduler, and it takes some milliseconds to import.
    import hashlib

    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_LENGTH]


def is_job(text: str) -> bool:
    """Whether a text can be the identity of a job: it also names a folder."""
    return _JOB.fullmatch(text) is not None


def name_of(command: Sequence[str]) -> str:
    """What a job is called when its user gave it no name: its script, else its module (``-m``), else its program."""
    words = command[1:]
    scripts = (PurePath(word).name for word in words if word.endswith((".py", ".sh")))
    modules = (module for option, module in pairwise(words) if option == "-m")
    return next(chain(scripts, modules), PurePath(command[0]).name)


def attempt_folder(home: Path, job: str, attempt: int, rank: int | None = None) -> Path:
    """Where an attempt keeps what it leaves."""
    return home / "runs" / job / (f"{attempt}" if rank is None else f"{attempt}-r{rank}")


def home_of(folder: Path) -> Path:
    """The home that an attempt's directory belongs to."""
    return folder.parents[2]


def rank_of(folder: Path) -> int | None:
    """The rank whose attempt is kept in a folder; None where it is that of the whole job."""
    _, _, rank = folder.name.partition("-r")
    return int(rank) if rank.isascii() and rank.isdigit() else None
