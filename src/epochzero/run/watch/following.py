"""Reads the records of a training that goes on as they come, and keeps a bounded choice of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochzero.run.watch.history import History

__all__ = ["Followed", "Following"]

MOST_BYTES = 24 << 20
"""Of records that are held, as text: a history is made of them again and again."""
_PIECE = 8 << 20
_SERIES = frozenset(("evaluation", "iteration", "losses"))
_FIRST = 100
"""How many records of a series always stay: a training shows most at its beginning."""


class Followed:
    """Records in their order; when there are too many, every second one of a series goes."""

    def __init__(self) -> None:
        self._records: list[tuple[Mapping[str, Any], int]] = []
        self._bytes = 0

    def take(self, record: Mapping[str, Any], size: int) -> None:
        """Holds a record whose text has so many bytes."""
        self._records.append((record, size))
        self._bytes += size
        if self._bytes > MOST_BYTES:
            self._thin_out()

    def clear(self) -> None:
        """Forgets all."""
        self._records.clear()
        self._bytes = 0

    @property
    def records(self) -> Iterable[Mapping[str, Any]]:
        """What is held."""
        return (record for record, _ in self._records)

    def history(self, planned: int | None = None) -> History:
        """What is held as a history; takes time with its size."""
        from epochzero.run.watch.history import read_records

        return read_records(self.records, planned)

    def _thin_out(self) -> None:
        seen: dict[str, int] = {}
        kept = []
        for record, size in self._records:
            kind = record.get("kind", "")
            number = seen[kind] = seen.get(kind, 0) + 1
            if kind not in _SERIES or number <= _FIRST or number % 2:
                kept.append((record, size))
        self._records = kept
        self._bytes = sum(size for _, size in kept)


class Following(Followed):
    """The records of a file that grows, or is begun anew by another process of the job."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._read = 0
        self._begun = b""

    def read(self) -> bool:
        """Takes what has come, a piece of much; whether that was anything."""
        data = b""
        with suppress(OSError), open(self._path, "rb") as file:
            if file.seek(0, 2) < self._read:
                self.clear()
                self._read, self._begun = 0, b""
            file.seek(self._read)
            data = file.read(_PIECE)
        self._read += len(data)
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            with suppress(ValueError, RecursionError):
                if isinstance(record := json.loads(line), dict):
                    self.take(record, len(line))
        return bool(lines)

    def read_all(self) -> None:
        """Takes all that is there."""
        while self.read():
            pass
