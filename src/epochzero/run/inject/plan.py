"""The faults of an attempt, as the job's processes read them: a folder of small files.

faults.json   what is to come; times by the clock that all processes of a machine share
N.began       since when fault N holds: seconds of that clock, the step if it was one, the process
N.done        the platform has done what a step waits for
N.met         what of the job met the fault, the first of each process, a line each
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
"""What fails in the process of the job, and counts its steps."""


@dataclass(frozen=True, slots=True)
class Began:
    """When a fault came.

    Attributes:
        elapsed: seconds since the plan was made.
        step: at which; None where it was none that the job's process counted.
        pid: of the process that made the step; 0 for none.
    """

    elapsed: float
    step: int | None
    pid: int


class InjectionPlan:
    """The supervisor's side of the folder."""

    def __init__(self, attempt: Path, faults: Sequence[InjectedFault]) -> None:
        """Writes what is to come; the attempt begins now.

        Args:
            attempt: folder of the attempt.
            faults: in the order of their numbers.

        Raises:
            OSError: nothing can be written.
        """
        self._folder = attempt / _FOLDER
        self._folder.mkdir()
        self._since = now = time.monotonic()
        told = [
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
        (self._folder / "faults.json").write_text(json.dumps(told), "utf-8")

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of a job with `COMPANIONS`."""
        return {**environment, _VARIABLE: str(self._folder)}

    def began(self, number: int) -> Began | None:
        """When the job came to the step of a fault; None when it has not yet."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads((self._folder / f"{number}.began").read_text("utf-8"))
            return Began(told["at"] - self._since, told["step"], told["pid"])
        return None

    def begin(self, number: int) -> None:
        """The fault holds from now on, unless it does already."""
        with (
            suppress(OSError),
            open(self._folder / f"{number}.began", "x", encoding="utf-8") as file,
        ):
            json.dump({"at": time.monotonic(), "step": None, "pid": 0}, file)

    def done(self, number: int) -> None:
        """A step need not wait for the fault any longer."""
        with suppress(OSError):
            (self._folder / f"{number}.done").touch()

    def met(self, number: int) -> tuple[str, ...]:
        """What of the job met the fault."""
        with suppress(OSError):
            text = (self._folder / f"{number}.met").read_text("utf-8", errors="replace")
            return tuple(text.splitlines())
        return ()
