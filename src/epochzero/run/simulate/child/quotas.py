"""Quotas of folders that are this machine's own: what the job's Python adds there is measured.

Processes of a job note the files that they write in one ledger, each with its size before; what was added is
what these files have grown by. Files that are deleted are given back.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MEASURED = 4
"""What is left is measured again when this process has used so great a part of it: others write, too."""
_PAUSE = 20
"""What was opened may be written to without Python: then it is measured, too, but not for most of the time."""
# The job's are held to the platform, and its time may be replaced.
_open, _read, _write, _close, _stat = os.open, os.read, os.write, os.close, os.stat
_now = time.monotonic


class Quota:
    """Of one folder."""

    def __init__(self, path: str, limit: int, ledger: str) -> None:
        """Nothing is written yet.

        Args:
            path: of the folder.
            limit: bytes that may be added.
            ledger: the file that the job's processes share.
        """
        self._folder = os.path.join(os.path.realpath(path), "")
        self._limit = limit
        self._ledger = ledger
        self._noted: set[str] = set()
        self._left = self._unmeasured = 0
        self._opened = False
        self._next_s = 0.0

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook: notes what is about to be written."""
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            self._note(arguments[0])
        elif event == "os.rename":
            self._note(arguments[1])

    def holds(self) -> bool:
        """See `WriteRefusal`."""
        return True

    def refuses(self, path: str, size: int) -> bool:
        """See `WriteRefusal`."""
        if not path.startswith(self._folder):
            return False
        used = self._unmeasured + size
        if used * _MEASURED >= self._left or (self._opened and _now() >= self._next_s):
            self._measure()
            used = size
        refused = used > self._left
        self._unmeasured = used - size if refused else used
        return refused

    def _measure(self) -> None:
        began = _now()
        self._left, self._opened = self._limit - self._added(), False
        self._next_s = _now() + _PAUSE * (_now() - began)

    def _note(self, path: Any) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        place = os.path.realpath(os.fsdecode(path))
        if not place.startswith(self._folder):
            return
        self._opened = True
        if place in self._noted:
            return
        self._noted.add(place)
        file = _open(self._ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _write(file, json.dumps([place, _size(place)]).encode() + b"\n")
        finally:
            _close(file)

    def _added(self) -> int:
        """Bytes by which the files have grown since each was first noted."""
        before: dict[str, int] = {}
        for line in _text(self._ledger).splitlines():
            with suppress(ValueError):
                place, size = json.loads(line)
                before.setdefault(place, size)
        mine = (place for place in before if place.startswith(self._folder))
        return sum(_size(place) - before[place] for place in mine)


def _size(path: str) -> int:
    """Of a file; 0 where there is none."""
    try:
        return _stat(path).st_size
    except OSError:
        return 0


def _text(path: str) -> bytes:
    pieces = []
    try:
        file = _open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        while piece := _read(file, 1 << 20):
            pieces.append(piece)
    finally:
        _close(file)
    return b"".join(pieces)
