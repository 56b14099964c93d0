"""The faults of an attempt as small files that the job's processes read.

faults.json   planned faults; times on the clock that all processes of a machine share
N.began       start of fault N: seconds on that clock, the step if there is one, the process
N.done        the platform has done what a step waits for
N.met         processes that met the fault, one line each
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from epochzero.injected.companions import Companion
from epochzero.run.inject.grammar import InjectedFault

_VARIABLE = "EPOCHZERO_INJECT"
_FOLDER = "inject"
_BEGIN = "epochzero.run.inject.child.begin"
COMPANIONS = (
    Companion("python", f"{_BEGIN}:begin_python"),
    Companion("torch", f"{_BEGIN}:begin_torch"),
)
"""Companions that inject faults in the process of the job and count its steps."""


@dataclass(frozen=True, slots=True)
class Began:
    """When a fault occurred.

    Attributes:
        elapsed: seconds since the plan was written.
        step: optimizer step; None if the job's process counted none.
        pid: process that made the step; 0 if there is none.
    """

    elapsed: float
    step: int | None
    pid: int


class InjectionPlan:
    """The supervisor's side of the directory."""

    def __init__(self, attempt: Path, faults: Sequence[InjectedFault]) -> None:
        """Write the planned faults; the attempt starts now.

        Args:
            attempt: directory of the attempt.
            faults: in the order of their numbers.

        Raises:
            OSError: the files cannot be written.
        """
        self._folder = attempt / _FOLDER
        self._folder.mkdir()
        self._since = now = time.monotonic()
        stored = [
            {
                "name": fault.name,
                "step": fault.step,
                "at": None if fault.after is None else now + fault.after,
                "rank": fault.rank,
                "delay": fault.delay,
                "word": fault.word,
                "lasts": fault.lasts,
                "waits": not fault.kind.inside,
            }
            for fault in faults
        ]
        (self._folder / "faults.json").write_text(json.dumps(stored), "utf-8")

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a job with `COMPANIONS`."""
        return {**environment, _VARIABLE: str(self._folder)}

    def began(self, number: int) -> Began | None:
        """Return when the job reached the step of a fault; None if it has not."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads((self._folder / f"{number}.began").read_text("utf-8"))
            return Began(stored["at"] - self._since, stored["step"], stored["pid"])
        return None

    def begin(self, number: int) -> None:
        """Start the fault unless it has already started."""
        with (
            suppress(OSError),
            open(self._folder / f"{number}.began", "x", encoding="utf-8") as file,
        ):
            json.dump({"at": time.monotonic(), "step": None, "pid": 0}, file)

    def done(self, number: int) -> None:
        """Release the step that waits for the fault."""
        with suppress(OSError):
            (self._folder / f"{number}.done").touch()

    def met(self, number: int) -> tuple[str, ...]:
        """Return what parts of the job met the fault."""
        with suppress(OSError):
            text = (self._folder / f"{number}.met").read_text("utf-8", errors="replace")
            return tuple(text.splitlines())
        return ()
