"""Sets up the environment of a job so that something of ours begins in the job's own process.

A companion is a function in a module that needs nothing but the standard library and its own package
(the job's Python may be another one, without us). It is called with the module that was imported and
with the job's variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from epochzero import launchers
from epochzero.injected.ranks import RANKS_VARIABLE

AT_START = "python"
"""Before the first line of the job."""
_COMPANIONS_VARIABLE = "EPOCHZERO_COMPANIONS"
_NOTES_VARIABLE = "EPOCHZERO_COMPANIONS_NOTES"
_LAUNCHERS_VARIABLE = "EPOCHZERO_LAUNCHERS"
_NOTES_FILE = "companions.txt"
_START = Path(__file__).parent / "start"


@dataclass(frozen=True, slots=True)
class Companion:
    """What is to begin, and when.

    Attributes:
        when: the module whose import it waits for (``torch``), or `AT_START`.
        call: the function, as ``package.module:function``.
    """

    when: str
    call: str


@dataclass(frozen=True, slots=True)
class CompanionState:
    """How far the companions of a job came.

    Attributes:
        reached: `AT_START` when a Python began, and the modules that were waited for and imported.
        failed: why one could not begin, each with its function's name in front.
    """

    reached: frozenset[str]
    failed: tuple[str, ...]


def with_companions(
    environment: Mapping[str, str], companions: Sequence[Companion], folder: Path
) -> dict[str, str]:
    """The environment of a job with these companions; its own PYTHONPATH stands behind ours.

    Args:
        environment: of the job, which has none yet.
        companions: what is to begin, in this order; none for the environment as it is.
        folder: of the attempt, where `noted` looks.
    """
    if not companions:
        return dict(environment)
    starting = [launcher for launcher in launchers.every() if launcher.starts_ranks]
    paths = [str(_START), *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(paths),
        _COMPANIONS_VARIABLE: ",".join(
            f"{companion.when}={companion.call}" for companion in companions
        ),
        _NOTES_VARIABLE: str(folder / _NOTES_FILE),
        _LAUNCHERS_VARIABLE: ",".join(
            name for tool in starting for name in tool.names + tool.modules
        ),
        RANKS_VARIABLE: ",".join(launchers.rank_variables()),
    }


def noted(folder: Path) -> CompanionState:
    """What the companions of an attempt have noted; nothing where none began."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (folder / _NOTES_FILE).read_text("utf-8", errors="replace").splitlines()
    failed = tuple(line.removeprefix("failed ") for line in lines if line.startswith("failed "))
    return CompanionState(frozenset(lines), failed)
