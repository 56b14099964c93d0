"""Reads the records of a training that goes on as they come, and keeps a bounded choice of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochzero.run.watch.child.records import MOST_RANKS, rank_path

if TYPE_CHECKING:
    from epochzero.run.watch.history import TrainingHistory


MOST_BYTES = 24 << 20
"""Of records that are held, as text: a history is made of them again and again."""
_PIECE = 8 << 20
_SERIES = frozenset(("evaluation", "iteration", "losses"))
_FIRST = 100
"""How many records of a series always stay: a training shows most at its beginning."""
_MOST_EVERY = 1 << 20


class RecordBuffer:
    """Records in their order; of a series of too many every second one, every fourth, and so on."""

    def __init__(self) -> None:
        self._records: list[tuple[Mapping[str, Any], int, int]] = []
        self._counts: Counter[str] = Counter()
        self._every = 1
        self._bytes = 0

    def take(self, record: Mapping[str, Any], size: int) -> None:
        """Holds a record whose text has so many bytes, unless there are enough like it."""
        kind = str(record.get("kind", ""))
        number = self._counts[kind] if kind in _SERIES else 0
        self._counts[kind] += 1
        if self._stays(number):
            self._records.append((record, size, number))
            self._bytes += size
        while self._bytes > MOST_BYTES and self._every < _MOST_EVERY:
            self._every *= 2
            self._records = [row for row in self._records if self._stays(row[2])]
            self._bytes = sum(size for _, size, _ in self._records)

    def clear(self) -> None:
        """Forgets all."""
        self._records.clear()
        self._counts.clear()
        self._every, self._bytes = 1, 0

    @property
    def records(self) -> Sequence[Mapping[str, Any]]:
        """What is held."""
        return [record for record, _, _ in self._records]

    def history(self, planned: int | None = None) -> TrainingHistory:
        """What is held as a history; takes time with its size."""
        from epochzero.run.watch.history import read_records

        return read_records(self.records, planned)

    def _stays(self, number: int) -> bool:
        return number < _FIRST or number % self._every == 0


class RecordFileReader(RecordBuffer):
    """The records of a file that grows, or is started again by another process of the job; and those of its other ranks."""

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        super().__init__()
        self._path = path
        paths = {} if alone else {n: Path(rank_path(str(path), n)) for n in range(1, MOST_RANKS)}
        self._ranks = {rank: RecordFileReader(other, alone=True) for rank, other in paths.items()}
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
        others = [following.read() for following in self._ranks.values()]
        return bool(lines) or any(others)

    def history(self, planned: int | None = None) -> TrainingHistory:
        """What is held as a history, with those of other ranks that train."""
        ranks = {rank: of.history(planned) for rank, of in self._ranks.items() if of.records}
        return replace(super().history(planned), ranks=ranks)

    def read_all(self) -> None:
        """Takes all that is there."""
        while self.read():
            pass
