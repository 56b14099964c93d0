"""How the columns of a table depend on one another.

Spearman's rank correlations, of a uniform sample of the records: of numbers, of what is computed of each record
(`measures`), of the lengths of texts, and of whether a category has one of its most frequent values.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from epochzero.data.model import ColumnProfile
from epochzero.data.summary import ALPHABET_LENGTH, FEWEST, Floats, written

MOST_RECORDS = 2000
MOST_FEATURES = 64
MOST_VALUES = 5
_NUMBERS = ("number", "boolean")


class RecordSample:
    """A uniform sample of the records of a stream: those that draw the smallest keys."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._records: list[tuple[float, Mapping[str, Any]]] = []
        self._below = 1.0

    def add(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        """Take records; columns of arrays, and those that do not have a value for each record, are left out."""
        keys = self._random.random(count)
        plain = {
            name: values
            for name, values in columns.items()
            if len(values) == count and getattr(values, "ndim", 1) == 1
        }
        for index in np.flatnonzero(keys < self._below).tolist():
            record = {name: _short(values[index]) for name, values in plain.items()}
            self._records.append((float(keys[index]), record))
        if len(self._records) > 2 * MOST_RECORDS:
            self._records = heapq.nsmallest(MOST_RECORDS, self._records, key=itemgetter(0))
            self._below = self._records[-1][0]

    def relations(self, columns: Sequence[ColumnProfile]) -> tuple[tuple[str, str, float], ...]:
        """The correlations of features of different columns, by the names of the features."""
        drawn = heapq.nsmallest(MOST_RECORDS, self._records, key=itemgetter(0))
        features: dict[str, Floats] = {}
        for column in columns:
            values = [record.get(column.name) for _, record in drawn]
            features |= {name: _ranks(each) for name, each in _features(column, values)}
        names = [name for name, ranks in features.items() if ranks.any()][:MOST_FEATURES]
        if len(names) < 2:
            return ()
        matrix = np.corrcoef([features[name] for name in names])
        return tuple(
            (names[a], names[b], round(float(matrix[a, b]), 4))
            for a, b in itertools.combinations(range(len(names)), 2)
            if column_of(names[a]) != column_of(names[b])
        )


def column_of(feature: str) -> str:
    """The column of a feature: of ``hour of day``, ``length of day`` or ``day = monday`` it is ``day``."""
    return feature.rpartition(" of ")[2].partition(" = ")[0]


def _short(value: Any) -> Any:
    return value[:ALPHABET_LENGTH] if isinstance(value, str) else value


def _features(column: ColumnProfile, values: Sequence[Any]) -> Iterator[tuple[str, Floats]]:
    """The numbers of a column, those of its texts or categories; identifiers and times have none."""
    if column.kind in _NUMBERS:
        if not (column.unique and column.numbers and column.numbers.integers):
            yield column.name, np.array([_number(value) for value in values])
    elif column.kind == "category":
        texts = [None if value is None else written(value) for value in values]
        named = {name for name, _ in column.categories}
        for name, count in Counter(text for text in texts if text in named).most_common(
            MOST_VALUES
        ):
            if count >= FEWEST:
                yield f"{column.name} = {name}", np.array([float(text == name) for text in texts])
    elif column.kind == "text":
        lengths = [float(len(value)) if isinstance(value, str) else np.nan for value in values]
        yield f"length of {column.name}", np.array(lengths)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _ranks(numbers: Floats) -> Floats:
    """The ranks less their mean, equal numbers with their middle rank; 0 for what is missing."""
    ranks = np.zeros(len(numbers))
    given = np.isfinite(numbers)
    _, inverse, counts = np.unique(numbers[given], return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    ranks[given] = middle[inverse] - (given.sum() - 1) / 2
    return ranks
