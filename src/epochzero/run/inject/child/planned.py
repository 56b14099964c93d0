"""The faults of this process's job, and since when each holds.

What is used here are the functions as Python made them: those that a job calls may fail by now.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from epochzero.injected.ranks import own_rank

_WAITS_S = 10.0
_PAUSE_S = 0.02
_OF_A_RANK = ("kill-rank", "oom")
"""What comes to one rank, and not to whichever comes to its step."""
_open, _write, _close, _stat, _read = os.open, os.write, os.close, os.stat, os.read
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Planned:
    """One fault, as `epochzero.run.inject.plan` has written it."""

    def __init__(self, path: str, told: Mapping[str, Any], rank: int) -> None:
        self._path = path
        self._at: float | None = told["at"]
        self._lasts: float | None = told["lasts"]
        self._waits: bool = told["waits"]
        self._others = told["name"] in _OF_A_RANK and told["rank"] != rank
        self._told: set[int] = set()
        self.name: str = told["name"]
        self.step: int | None = told["step"]
        self.delay: float = told["delay"]
        self.word: str = told["word"]

    def holds(self) -> bool:
        """Whether it is so now."""
        now = time.monotonic()
        if self._at is None:
            self._at = self._began()
        if self._at is None or now < self._at:
            return False
        return self._lasts is None or now < self._at + self._lasts

    def come_to(self, step: int) -> bool:
        """A step begins; whether the fault came with it, just now and in this process.

        A step waits until the platform has done what is not done within this process.
        """
        if self.step is None or step < self.step or self._others or self._at is not None:
            return False
        self._at = self._began()
        if self._at is not None:
            return False
        self._at = time.monotonic()
        told = {"at": self._at, "step": step, "pid": os.getpid()}
        if not self._leave("began", os.O_EXCL, json.dumps(told)):
            return False
        until = self._at + _WAITS_S
        while self._waits and time.monotonic() < until and not _exists(self._path + ".done"):
            time.sleep(_PAUSE_S)
        return True

    def refuses(self, path: str, _: int) -> bool:
        """Every write to a file, while it holds."""
        self.meets(f"a write to {path} failed")
        return True

    def meets(self, what: str) -> None:
        """The job met the fault; the first time in each process is told."""
        if os.getpid() not in self._told:
            self._told.add(os.getpid())
            self._leave("met", os.O_APPEND, what + "\n")

    def _began(self) -> float | None:
        try:
            file = _open(self._path + ".began", os.O_RDONLY)
        except OSError:
            return None
        try:
            return float(json.loads(_read(file, 4096))["at"])
        except ValueError:
            return None  # It is just being written.
        finally:
            _close(file)

    def _leave(self, what: str, how: int, text: str) -> bool:
        try:
            file = _open(f"{self._path}.{what}", os.O_WRONLY | os.O_CREAT | how, 0o600)
        except OSError:
            return False
        try:
            _write(file, text.encode("utf-8", "replace"))
        finally:
            _close(file)
        return True


def planned(environment: Mapping[str, str]) -> list[Planned]:
    """The faults that the variables of a job tell of."""
    folder = environment["EPOCHZERO_INJECT"]
    file = _open(f"{folder}/faults.json", os.O_RDONLY)
    try:
        told = json.loads(_read(file, 1 << 20))
    finally:
        _close(file)
    rank = own_rank(environment)
    return [Planned(f"{folder}/{place}", one, rank) for place, one in enumerate(told)]


def as_of_python(function: _Function) -> _Function:
    """The function, whose frames in a traceback read as Python's own.

    A diagnosis must find the job's own line, as it would where the platform really fails.
    """
    code = function.__code__.replace(co_filename=f"<frozen {function.__module__}>")
    function.__code__ = code
    return function


def _exists(path: str) -> bool:
    try:
        _stat(path)
    except OSError:
        return False
    return True
