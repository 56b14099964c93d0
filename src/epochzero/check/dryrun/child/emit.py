"""Writes what happens in the child as records, one JSON object a line, for the parent to read."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

LONGEST_TEXT = 8000
MOST_RECORDS = 5000


class RecordPipe:
    """The pipe to the parent.

    Args:
        descriptor: where to write; the job's own child processes do not inherit it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = os.getpid()
        self._written = 0
        self._lock = threading.Lock()
        os.set_inheritable(descriptor, False)

    def emit(self, kind: str, **fields: Any) -> None:
        """Write one record; a pipe that the job closed, or a forked process, writes nothing."""
        if self._written >= MOST_RECORDS or os.getpid() != self._process:
            return
        self._written += 1
        line = json.dumps({"kind": kind, **{k: _bounded(v) for k, v in fields.items()}})
        with self._lock:
            try:
                os.write(self._descriptor, line.encode() + b"\n")
            except OSError:
                self._written = MOST_RECORDS

    def move_to(self, descriptor: int) -> None:
        """Continue in a forked process, whose records go elsewhere."""
        self._descriptor, self._process, self._written = descriptor, os.getpid(), 0
        os.set_inheritable(descriptor, False)

    def end(self) -> None:
        """Write nothing from here on."""
        self._written = MOST_RECORDS


def _bounded(value: Any) -> Any:
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
