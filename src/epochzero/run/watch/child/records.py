"""Writes what is seen as records, one JSON object a line, for `epochzero.run.watch.history` to read.

Schema ``epochzero.watch/1``: each record has ``kind`` and the keys that who emits it gives it. Numbers that
are not finite are the texts "nan", "inf" and "-inf": JSON has none for them.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

SCHEMA = "epochzero.watch/1"
MOST_BYTES = 256 << 20
"""A watched job must not fill a disk."""
MOST_RANKS = 8
"""Ranks that are watched, to be compared with the first."""
EVERY_S = 0.5
_TRAINS = ("losses", "iteration")
"""Kinds that only a process has which trains: a launcher and the workers of a loader have none."""
_MOST_HELD = 8 << 20
"""Of a process that only evaluates so far."""


class Records:
    """Where records go: a file that is appended to, or a function of this process.

    A launcher, the workers of a loader and several ranks may all be given the same file. It belongs to
    the first of them that trains; the others write nothing, unless they know that they are another rank.
    When that has ended, the next process that trains starts the file again.

    Args:
        path: of the file; None for none.
        on_record: called with each record as it is made; None for no callback.
        append: write behind what is in the file, whoever wrote that.
        rank: the rank of this process, asked before it writes first; None or 0 for the first or only one. Others have a file of
            their own, as of `rank_path`.
    """

    def __init__(
        self,
        path: str | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        append: bool = False,
        rank: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._path = path
        self._rank = rank
        self._on_record = on_record
        self._process = os.getpid()
        self._lines: list[bytes] = []
        self._written = 0
        self._next = 0.0
        self._trains = self._owns = append
        self._failed = False
        self._told: set[tuple[str, Any]] = set()

    def is_first(self, kind: str, what: Any = None) -> bool:
        """Whether a record of a kind, or one of it about this, was not asked for before."""
        first = (kind, what) not in self._told
        self._told.add((kind, what))
        return first

    def emit(self, kind: str, **fields: Any) -> None:
        """Keeps one record; of a forked process, or when there are too many, none."""
        if os.getpid() != self._process or self._written > MOST_BYTES:
            return
        record = {"kind": kind, **plain(fields)}
        if self._on_record is not None:
            self._on_record(record)
        if self._path is None:
            return
        self._trains = self._trains or kind in _TRAINS
        self._failed = self._failed or kind == "failed"
        if kind == "evaluation" and not self._trains and self._written > _MOST_HELD:
            return
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        self._lines.append(line)
        self._written += len(line)
        if time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        """Writes what is held, if the file is ours; a full disk loses it."""
        self._next = time.monotonic() + EVERY_S
        if self._path is None or os.getpid() != self._process or not self._may_write(self._path):
            return
        lines, self._lines = self._lines, []
        if not lines:
            return
        try:
            if not self._owns:
                self._own(self._path)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, b"".join(lines))
            finally:
                os.close(file)
        except OSError:
            self._written = MOST_BYTES + 1

    def _may_write(self, path: str) -> bool:
        """Whether the file is ours or may become so: a failure is recorded where nothing else is."""
        return self._owns or self._trains or (self._failed and not os.path.exists(path))

    def _own(self, path: str) -> None:
        """Begins the file of this rank, unless another process that lives writes it.

        Raises:
            OSError: another one does, or ranks as high as this one are not compared.
        """
        self._owns = True
        rank = self._rank() or 0
        if rank >= MOST_RANKS:
            raise OSError(f"rank {rank} is not compared")
        path = self._path = rank_path(path, rank)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            owner = _owner(path)
            if owner not in (None, self._process) and os.path.exists(f"/proc/{owner}"):
                raise
            os.truncate(path, 0)


def rank_path(path: str, rank: int) -> str:
    """The file of a rank: ``watch.jsonl`` of the first, ``watch.rank1.jsonl`` of the next."""
    stem, extension = os.path.splitext(path)
    return f"{stem}.rank{rank}{extension}" if rank else path


def joined_rank() -> int | None:
    """The rank of this process in the process group that it has joined; None without one of several processes."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None


def _owner(path: str) -> int | None:
    """The process that created the file, as its first line says."""
    if not os.path.getsize(path):
        # One that is about to write has a moment.
        time.sleep(EVERY_S / 10)
    try:
        with open(path, "rb") as file:
            return int(json.loads(file.readline())["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def plain(value: Any) -> Any:
    """The value as strict JSON has it; of an unknown kind its text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        # Seven digits are what single precision has; a time has more.
        return float(f"{value:.7g}") if abs(value) < 1e7 else value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)[:200]
