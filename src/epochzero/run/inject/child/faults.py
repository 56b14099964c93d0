"""The faults of this process's job, and the start of each.

This module uses Python's original functions: those that the job calls may already fail.
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
"""Faults of one rank; others occur in whichever rank reaches their step."""
_open, _write, _close, _stat, _read = os.open, os.write, os.close, os.stat, os.read
_Function = TypeVar("_Function", bound=Callable[..., Any])


class PlannedFault:
    """One fault, as written by `epochzero.run.inject.plan`."""

    def __init__(self, path: str, fields: Mapping[str, Any], rank: int) -> None:
        self._path = path
        self._at: float | None = fields["at"]
        self._lasts: float | None = fields["lasts"]
        self._waits: bool = fields["waits"]
        self._others = fields["name"] in _OF_A_RANK and fields["rank"] != rank
        self._told: set[int] = set()
        self.name: str = fields["name"]
        self.step: int | None = fields["step"]
        self.delay: float = fields["delay"]
        self.word: str = fields["word"]

    def holds(self) -> bool:
        """Whether the fault is active now."""
        now = time.monotonic()
        if self._at is None:
            self._at = self._began()
        if self._at is None or now < self._at:
            return False
        return self._lasts is None or now < self._at + self._lasts

    def come_to(self, step: int) -> bool:
        """A step starts; return whether the fault occurred with it, just now and in this process.

        A step waits until the platform has done what is not done within this process.
        """
        if self.step is None or step < self.step or self._others or self._at is not None:
            return False
        self._at = self._began()
        if self._at is not None:
            return False
        self._at = time.monotonic()
        fields = {"at": self._at, "step": step, "pid": os.getpid()}
        if not self._leave("began", os.O_EXCL, json.dumps(fields)):
            return False
        until = self._at + _WAITS_S
        while self._waits and time.monotonic() < until and not _exists(self._path + ".done"):
            time.sleep(_PAUSE_S)
        return True

    def refuses(self, path: str, _: int) -> bool:
        """Refuse every write to a file while the fault is active."""
        self.meets(f"a write to {path} failed")
        return True

    def meets(self, what: str) -> None:
        """Record that the job met the fault, once per process."""
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
            return None  # it is being written
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


def planned(environment: Mapping[str, str]) -> list[PlannedFault]:
    """Return the faults in the environment of a job."""
    folder = environment["EPOCHZERO_INJECT"]
    file = _open(f"{folder}/faults.json", os.O_RDONLY)
    try:
        fields = json.loads(_read(file, 1 << 20))
    finally:
        _close(file)
    rank = own_rank(environment)
    return [PlannedFault(f"{folder}/{place}", field, rank) for place, field in enumerate(fields)]


def as_of_python(function: _Function) -> _Function:
    """Return the function with frames that look like Python's own in a traceback.

    A diagnosis must find the job's own line, as if the platform had failed.
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
