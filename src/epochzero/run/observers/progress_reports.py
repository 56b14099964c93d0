"""Progress that the job itself reports, exactly: read from a file that it appends to.

Who trains with a callback of `epochzero.integrations` writes a JSON object a line into the file that
`epochzero.run.records.identity.PROGRESS_VARIABLE` names. A field that a line does not have is as it was before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from epochzero.run.observers.losses import LossWatch
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.identity import PROGRESS_FILE
from epochzero.run.records.model import JobEvent, JobProgress, Record

_COUNTS = ("step", "steps")
_NUMBERS = ("epoch", "epochs")
_NOT_FINITE = ("nan", "inf", "-inf")
_TEXTS = ("checkpoint", "memory", "phase")
_EVENTS = ("memory", "phase")
"""Texts that are events, not progress."""
_MOST_TEXT = 4096
_MOST_BYTES = 1 << 20


class ProgressFileWatcher(Watcher):
    """The watcher that reads the file each second."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._phase = ""
        self._loss = LossWatch()
        self._read = 0
        self._begun = b""

    def tick(self) -> Iterator[Record]:
        """See `Watcher`: one record for all that is new, and one for each new phase."""
        before = dict(self._known)
        for line in self._lines():
            self._known |= (values := _values(line))
            phase = values.get("phase", self._phase)
            if phase != self._phase:
                self._phase = phase
                text = f"the job reports the phase {phase}"
                yield JobEvent(*self._clock.now(), "phase", text, details={"phase": phase})
            if "memory" in values:
                yield JobEvent(*self._clock.now(), "memory", f"the job {values['memory']}")
        if self._known != before:
            known = {name: value for name, value in self._known.items() if name not in _EVENTS}
            yield from self._loss.look(known.get("loss"), self._clock)
            yield JobProgress(*self._clock.now(), **known)

    def ended(self) -> Iterator[Record]:
        """See `Watcher`: what was reported since the last second."""
        yield from self.tick()

    def _lines(self) -> list[bytes]:
        """The lines that are whole now. Of more than a megabyte the newest count."""
        data = b""
        with suppress(OSError), open(self._folder / PROGRESS_FILE, "rb") as file:
            size = file.seek(0, 2)
            if size > self._read + _MOST_BYTES:
                self._read, self._begun = size - _MOST_BYTES, b""
            file.seek(self._read)
            data = file.read(_MOST_BYTES)
        self._read += len(data)
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._begun = self._begun[-_MOST_BYTES:]
        return lines


def _values(line: bytes) -> dict[str, Any]:
    """The fields of a line that are what they should be; none of a torn line."""
    with suppress(ValueError, RecursionError, OverflowError):
        found = json.loads(line)
        if isinstance(found, Mapping):
            fitting = {name: value for name, value in found.items() if _fits(name, value)}
            if "loss" in fitting:
                fitting["loss"] = float(fitting["loss"])
            return fitting
    return {}


def _fits(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return False
    if name in _COUNTS:
        return isinstance(value, int) and 0 <= value < 1 << 63
    if name == "loss":
        return isinstance(value, int | float) or value in _NOT_FINITE
    if name in _NUMBERS:
        with suppress(OverflowError):
            return isinstance(value, int | float) and math.isfinite(value)
    return name in _TEXTS and isinstance(value, str) and len(value) <= _MOST_TEXT
