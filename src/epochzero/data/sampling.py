"""Draws a small part of a data set that keeps what is rare in it.

For each table these records are taken first: of every class one, and for each column the smallest
and the largest number, the shortest and the longest text or list, one of each category, and one
without a value. The rest is drawn at random, all records with the same probability.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epochzero.data.formats import Batch, Faults, relative
from epochzero.data.profiling import LABELS, OnProgress, silent
from epochzero.data.source import CLASS, TableSource, find_sources, read
from epochzero.data.summary import LONGEST_CATEGORY, as_numbers, kind_of, kind_of_text
from epochzero.errors import InputError, writing

# A column with more different texts than this is free text, not a category; a label has classes.
MOST_CATEGORIES = 100
MOST_CLASSES = 10_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was drawn of a table.

    Attributes:
        table: its name.
        records: how many it has.
        drawn: how many of them were taken.
        corners: how many of those because they are a corner case.
    """

    table: str
    records: int
    drawn: int
    corners: int


def sample(
    path: str | Path,
    folder: str | Path,
    *,
    count: int = 100,
    seed: int = 0,
    label: str | None = None,
    on_progress: OnProgress = silent,
) -> tuple[Sampled, ...]:
    """Writes a small part of a data set, laid out as the whole is.

    Args:
        path: a file or folder; it is only read.
        folder: is made, and must not lie in the data set.
        count: records of each table. Corner cases are taken even when they are more.
        seed: of the random numbers, not negative; the same seed draws the same records.
        label: the column that is to be predicted, of which every class is kept; when None it is
            found by its name, as for a profile.
        on_progress: called with a table's name and its number of records so far.

    Raises:
        InputError: there are no data of a known format, a format needs a package that is missing,
            or the folder lies in the data set, has something in it or cannot be written.
    """
    root, target = Path(path), Path(folder)
    sources = find_sources(root)
    if count < 1:
        raise InputError(f"{count} is not a valid number of records")
    if target.resolve().is_relative_to(root.resolve()):
        raise InputError(
            f"{folder} is inside the data set, which is never modified; choose another directory"
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{folder} already exists and is not empty; choose a new directory")
    labels = LABELS if label is None else (label,)
    drawn = []
    for number, source in enumerate(sources):
        random = np.random.default_rng((seed, number))
        chosen = _Chosen(count, random, labels, texts=source.format.only_texts)
        for batch in read(source, root, Faults()):
            chosen.look(batch)
            on_progress(source.name, chosen.records)
        numbers = chosen.numbers()
        with writing(folder):
            _copy(source, numbers, root, target)
        drawn.append(Sampled(source.name, chosen.records, len(numbers), len(chosen.corners())))
    return tuple(drawn)


class _Chosen:
    """The records of a table that are taken, by their numbers from 0 over all its files."""

    def __init__(
        self, count: int, random: np.random.Generator, labels: Sequence[str], *, texts: bool
    ) -> None:
        self.records = 0
        self._count = count
        self._random = random
        self._labels = {*labels, CLASS}
        self._texts = texts
        self._ends: dict[tuple[str, str], tuple[float, int]] = {}
        self._categories: dict[str, dict[str, int]] = {}
        self._keys: np.ndarray[Any, Any] = np.empty(0)
        self._numbers: np.ndarray[Any, Any] = np.empty(0, dtype=np.int64)

    def look(self, batch: Batch) -> None:
        """Takes the next records: notes their corner cases, and draws among them."""
        for name, values in batch.columns.items():
            self._look_at(name, values)
        self._draw(len(batch))
        self.records += len(batch)

    def _look_at(self, name: str, values: Sequence[Any]) -> None:
        if name not in self._labels and (numbers := self._numbers_of(values)) is not None:
            for index in (int(numbers.argmin()), int(numbers.argmax())):
                self._end(name, "number", float(numbers[index]), self.records + index)
            return
        texts = set(map(type, values)) == {str}
        kind_of_one = kind_of_text if texts else kind_of
        for number, value in _firsts(values) if texts else enumerate(values):
            number += self.records
            kind = kind_of_one(value, texts=self._texts)
            if kind == "empty":
                self._ends.setdefault((name, "missing"), (0.0, number))
            elif kind == "number":
                self._end(name, "number", float(value), number)
            elif kind in ("text", "list"):
                self._end(name, "length", float(len(value)), number)
            if kind in ("text", "boolean") or (kind == "number" and name in self._labels):
                self._category(name, str(value), number)

    def _numbers_of(self, values: Sequence[Any]) -> np.ndarray[Any, Any] | None:
        """The finite numbers that all values are."""
        if isinstance(values, np.ndarray):
            numbers = values if values.ndim == 1 else None
        else:
            numbers = as_numbers(values, texts=self._texts)
        return numbers if numbers is not None and np.isfinite(numbers).all() else None

    def _end(self, name: str, what: str, size: float, number: int) -> None:
        for end, sign in (("least", -1.0), ("most", 1.0)):
            key = (name, f"{what} {end}")
            if key not in self._ends or sign * size > self._ends[key][0]:
                self._ends[key] = (sign * size, number)

    def _category(self, name: str, value: str, number: int) -> None:
        known = self._categories.setdefault(name, {})
        if len(known) <= self._most(name) and len(value) <= LONGEST_CATEGORY:
            known.setdefault(value, number)

    def _draw(self, count: int) -> None:
        """Each record draws a key; those with the smallest keys stay."""
        keys = np.concatenate((self._keys, self._random.random(count)))
        numbers = np.concatenate((self._numbers, np.arange(count) + self.records))
        order = np.argsort(keys, kind="stable")[: self._count]
        self._keys, self._numbers = keys[order], numbers[order]

    def corners(self) -> set[int]:
        """The records that are corner cases."""
        found = {number for _, number in self._ends.values()}
        for name, known in self._categories.items():
            if len(known) <= self._most(name):
                found.update(known.values())
        return found

    def _most(self, name: str) -> int:
        """How many different values a category may have."""
        return MOST_CLASSES if name in self._labels else MOST_CATEGORIES

    def numbers(self) -> list[int]:
        """The records to take, in order: the corner cases, and others until there are enough."""
        taken = self.corners()
        for number in self._numbers.tolist():
            if len(taken) >= self._count:
                break
            taken.add(number)
        return sorted(taken)


def _firsts(values: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The different values, each where it comes first."""
    last = len(values) - 1
    found = {value: last - index for index, value in enumerate(reversed(values))}
    yield from ((index, value) for value, index in reversed(found.items()))


def _copy(source: TableSource, chosen: Sequence[int], root: Path, target: Path) -> None:
    """Copies records of a table, file by file; the chosen ones are in order."""
    by_file: dict[Path, list[int]] = {}
    before = 0
    for batch in read(source, root, Faults()):
        after = before + len(batch)
        for number in chosen[bisect_left(chosen, before) : bisect_left(chosen, after)]:
            file, record = batch.place(number - before)
            by_file.setdefault(file, []).append(record)
        before = after
    for file, records in by_file.items():
        place = target / relative(file, root)
        place.parent.mkdir(parents=True, exist_ok=True)
        source.format.copy(file, records, place)
