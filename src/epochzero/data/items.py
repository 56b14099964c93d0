"""Items of a data set that lives in memory, such as one of torch: what they are like.

An item is a mapping of columns. Arrays stand for themselves by a part of their values, so that
quantiles and means are those of a sample; shapes, types and extremes are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epochzero.data.comparison import compare
from epochzero.data.measures import measures_of
from epochzero.data.model import ColumnProfile, DataTable, Profile
from epochzero.data.profiling import LABELS
from epochzero.data.summary import ColumnSummary, Measure
from epochzero.data.validation import Validated, order
from epochzero.errors import InputError

FORMAT = "dataset"


@dataclass(frozen=True, slots=True)
class Array:
    """An array of an item.

    Attributes:
        shape: of it.
        dtype: of its values, as numpy writes it.
        values: some of them, the smallest and the largest included.
    """

    shape: tuple[int, ...]
    dtype: str
    values: tuple[float, ...]


def profile_items(
    name: str, items: Iterable[Mapping[str, Any]], *, label: str | None = None
) -> Profile:
    """The profile of a data set with one table.

    Args:
        name: of the data set.
        items: some of it.
        label: the column that is to be predicted; when None one that is called as labels are, or a
            single number behind an array, as in ``(image, class)``.

    Raises:
        InputError: no item has the column ``label``.
    """
    columns: dict[str, list[Any]] = {}
    count = 0
    for count, item in enumerate(items, 1):
        for column, value in item.items():
            values = columns.setdefault(column, [])
            values += [None] * (count - 1 - len(values)) + [value]
    for values in columns.values():
        values += [None] * (count - len(values))
    target = _label_of(columns) if label is None else label
    if label is not None and label not in columns:
        raise InputError(f"{name} has no column {label!r}")
    found = tuple(_column(name, values, target) for name, values in columns.items())
    arrays = {
        name: [list(v.values) if isinstance(v, Array) else v for v in values]
        for name, values in columns.items()
    }
    measures = []
    for measure, numbers in measures_of(arrays).items():
        summary = ColumnSummary(measure)
        summary.add(numbers)
        measures.append(summary.column())
    table = DataTable(name, FORMAT, 0, count, found, target, measures=tuple(measures))
    return Profile((table,))


def validate_items(found: Profile, known: Profile) -> Validated:
    """How the items of one profile differ from those of another; both of one table."""
    table, expected = found.tables[0], known.tables[0]
    findings = (finding for finding, _ in compare(expected, table, whole=False))
    return Validated(tuple(sorted(findings, key=order)), table.records)


def _label_of(columns: Mapping[str, Sequence[Any]]) -> str:
    named = next((name for name in LABELS if name in columns), "")
    if named or len(columns) != 2:
        return named
    (_, data), (name, values) = columns.items()
    whole = all(isinstance(value, int) for value in values)
    return name if whole and any(isinstance(value, Array) for value in data) else ""


def _column(name: str, values: Sequence[Any], label: str) -> ColumnProfile:
    """The column of these values; an array is a list of some of its values."""
    summary = ColumnSummary(name)
    summary.add([list(v.values) if isinstance(v, Array) else v for v in values])
    column = summary.column(every=name == label)
    arrays = [value for value in values if isinstance(value, Array)]
    if not arrays:
        return column
    lengths = Measure()
    lengths.add([array.shape[0] for array in arrays])
    shapes, dtypes = {array.shape for array in arrays}, {array.dtype for array in arrays}
    return replace(
        column,
        lengths=lengths.numbers(),
        shape=shapes.pop() if len(shapes) == 1 else None,
        dtype=dtypes.pop() if len(dtypes) == 1 else "",
    )
