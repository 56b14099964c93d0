"""A table of a report: its numbers, how each is written, and the same as CSV and Parquet.

Every table states its number of cases, and a cell with fewer than `FEW` cases is marked, since such a share is
unreliable.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from epochzero.errors import InputError, writing

FEW = 10
FEW_MARK = "†"
UNKNOWN = "–"

Kind = Literal["text", "code", "identity", "count", "number", "score", "p", "share", "interval"]
Cell = str | int | float | tuple[float, float] | None
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: its heading.
        kind: type of its cells: text, code (text of a log), identity (never broken), count (integer),
            number, score (three decimals, such as MAP), p (of a test), share (0 to 1, written as
            percent), interval (of two values, by ``interval_of``).
        cases: title of the column with the number of cases of each cell; may be the column itself, empty if there
            is none.
        interval_of: share, number or score.
    """

    title: str
    kind: Kind = "text"
    cases: str = ""
    interval_of: Literal["share", "number", "score"] = "share"

    @property
    def is_text(self) -> bool:
        return self.kind in ("text", "code", "identity")


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: of its files, without suffix; unique in a report.
        caption: what it shows.
        columns: the first one names the rows.
        rows: a cell for each column; None if unknown.
        n: number of cases.
        unit: what the cases are, in the plural.
        notes: below the table.
        most: maximum number of rows in the report; the files contain all. None for no limit.
        few: a cell with fewer cases is marked.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    n: int
    unit: str = "failures"
    notes: tuple[str, ...] = ()
    most: int | None = None
    few: int = FEW

    @property
    def head(self) -> str:
        """The caption with the number of cases."""
        return f"{self.caption} (n = {self.n:,} {self.unit})"

    @property
    def shown_rows(self) -> tuple[Row, ...]:
        """Rows that the report shows."""
        return self.rows[: self.most]

    def is_few(self, row: Row, column: Column) -> bool:
        """Whether a cell has at least one, but fewer than ``few`` cases."""
        if not column.cases:
            return False
        at = next(n for n, other in enumerate(self.columns) if other.title == column.cases)
        count = row[at]
        return isinstance(count, int) and 0 < count < self.few

    def all_notes(self) -> Iterator[str]:
        """Yield the notes, including explanations of marks and omitted rows."""
        yield from self.notes
        few = any(self.is_few(row, column) for row in self.shown_rows for column in self.columns)
        if few:
            yield f"{FEW_MARK} based on fewer than {self.few} {self.unit}."
        left = len(self.rows) - len(self.shown_rows)
        if left:
            yield f"{self.name}.csv contains {left:,} more rows."


def shown(cell: Cell, column: Column) -> str:
    """Format a cell for people.

    >>> shown(0.3456, Column("Share", "share")), shown(12345, Column("No.", "count"))
    ('34.6 %', '12,345')
    """
    if cell is None:
        return UNKNOWN
    if isinstance(cell, str):
        return cell
    if isinstance(cell, tuple):
        low, high = cell
        if column.interval_of == "share":
            return f"{100 * low:.1f}–{100 * high:.1f} %"
        if column.interval_of == "score":
            return f"{_signed(low)} to {_signed(high)}"
        return f"{_number(low)}–{_number(high)}"
    if column.kind == "share":
        return f"{100 * cell:.1f} %"
    if column.kind == "score":
        return _signed(cell)
    if column.kind == "p":
        return f"{cell:.3f}" if cell >= 0.001 else "< 0.001"
    if column.kind == "number":
        return _number(cell)
    return f"{cell:,}"


def _number(value: float) -> str:
    places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{places}f}"


def _signed(value: float) -> str:
    """Format with three decimals and a real minus sign, never as negative zero."""
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", "−")


def to_csv(table: Table) -> str:
    """Return all rows as CSV, numbers in full precision.

    Text that a spreadsheet would interpret as a formula is prefixed with an apostrophe (OWASP, CSV Injection).
    """
    file = StringIO(newline="")
    writer = csv.writer(file)
    columns = list(_flat_columns(table))
    writer.writerow([_guarded(title) for title, _ in columns])
    for values in zip(*(values for _, values in columns), strict=True):
        writer.writerow([_guarded(value) for value in values])
    return file.getvalue()


def write_parquet(table: Table, path: Path) -> None:
    """Write all rows as Parquet.

    Raises:
        InputError: pyarrow is not installed, or the file cannot be written.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError("Parquet requires pyarrow: pip install 'epochzero[study]'") from error
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    arrays, names = [], []
    for title, values in _flat_columns(table):
        kinds = {type(value) for value in values if value is not None}
        kind = float if kinds == {int, float} else kinds.pop() if kinds else str
        arrays.append(arrow.array(values, types[kind]))
        names.append(title)
    with writing(path):
        parquet.write_table(arrow.Table.from_arrays(arrays, names=names), path)


def _flat_columns(table: Table) -> Iterator[tuple[str, list[Any]]]:
    """Yield title and values of each column; an interval becomes two columns."""
    for at, column in enumerate(table.columns):
        cells = [row[at] for row in table.rows]
        if column.kind != "interval":
            yield column.title, cells
            continue
        for end, word in enumerate(("low", "high")):
            ends = [cell[end] if isinstance(cell, tuple) else None for cell in cells]
            yield f"{column.title}, {word}", ends


def _guarded(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
