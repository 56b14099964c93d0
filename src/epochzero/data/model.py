"""What a profile says of a data set, and its JSON form.

A `Profile` has tables, a `DataTable` columns, a `ColumnProfile` the summary of its values. All of it is
counts and summaries: free text is never kept, and of other values only those that are frequent and
short (see `Column.categories`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from epochzero.errors import InputError

SCHEMA = "epochzero.data-profile/1"

# The shares of the values below each of the quantiles of `Numbers`.
LEVELS = (0.0, 0.01, 0.02, *(n / 20 for n in range(1, 20)), 0.98, 0.99, 1.0)

Kind = Literal["number", "boolean", "category", "text", "date", "list", "empty"]

# What can be wrong with a file or record, by the name under which a profile counts it.
FAULTS: Mapping[str, str] = {
    "unreadable": "cannot be read",
    "broken": "is damaged or truncated",
    "damaged": "decodes only in part or to a wrong image",
    "empty_file": "is empty",
    "too_large": "would decompress to more than the limit",
    "unparsable": "does not conform to its format",
    "fields": "has a different number of fields than the header",
    "long_line": "has a line that is too long",
    "not_utf8": "has bytes that are not UTF-8",
    "nul": "has NUL characters",
    "duplicate_column": "has a duplicate column name",
    "unfinished_line": "ends in the middle of a line",
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """The summary of numbers.

    Attributes:
        count: how many finite numbers.
        min, max, mean, std: of the finite ones, exact; ``std`` divides by ``count``.
        integers: whether all of them are whole.
        nan, inf: how many are not a number, or infinite.
        quantiles: at `LEVELS`, from a uniform sample when there are more than 10,000 numbers.
    """

    count: int
    min: float
    max: float
    mean: float
    std: float
    integers: bool
    nan: int
    inf: int
    quantiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """The summary of a column.

    Attributes:
        name: of the column; ``a.b`` is key ``b`` of the object ``a``.
        kind: what its values are.
        count: how many records it has.
        missing: how many of them have no value.
        others: how many have a value of another kind.
        unique: whether no value comes twice among the first 10,000.
        distinct: how many different values; 0 when more than 10,000, or not counted.
        garbled: how many texts were decoded with the wrong encoding.
        padded: of numbers in a text file, how many are written with a zero in front, as codes are.
        changes: of a label, how many records are of another class than the one before.
        categories: values with their counts, the most frequent first: all classes of a label, else
            those that come at least 5 times; none longer than 64 characters.
        rest: how many values of a category are not in ``categories``.
        numbers: of numbers the values, of dates the seconds since 1970 (UTC), of lists the elements.
        lengths: of texts the characters, of lists the elements.
        tokens: of texts the words between blanks.
        alphabet: of texts the most frequent characters with their shares; blanks are left out.
        pattern: of dates ``date`` or ``datetime``.
        shape: of arrays that all have one: without the first axis, which counts the records.
        dtype: of arrays, as numpy writes it.
        by_label: the numbers of the records of each class.
    """

    name: str
    kind: Kind
    count: int
    missing: int = 0
    others: int = 0
    unique: bool = False
    categories: tuple[tuple[str, int], ...] = ()
    rest: int = 0
    numbers: Numbers | None = None
    lengths: Numbers | None = None
    tokens: Numbers | None = None
    alphabet: tuple[tuple[str, float], ...] = ()
    pattern: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    by_label: tuple[tuple[str, Numbers], ...] = ()
    distinct: int = 0
    garbled: int = 0
    padded: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with files or records.

    Attributes:
        kind: one of `FAULTS`.
        count: how often.
        file: the first file, relative to the data set.
        record: number of the first record or line in it, from 1; 0 for the file as a whole.
        message: what exactly is wrong there.
    """

    kind: str
    count: int
    file: str
    record: int
    message: str


@dataclass(frozen=True, slots=True)
class DataTable:
    """Files of one format that belong together: one file, the shards of one, or a folder of images.

    Attributes:
        name: relative path; digits of a file's name are ``*``, since shards differ in them.
        format: one of the formats that are known.
        files: how many.
        records: how many were read.
        columns: in their order.
        label: the column that is to be predicted; empty when none is known.
        details: what a writer of the format needs, such as the delimiter.
        faults: the most frequent first.
        measures: numbers computed of each record, such as ``norm of vector``.
        relations: rank correlations of pairs of features of columns, such as ``length of text`` and ``label = good``.
    """

    name: str
    format: str
    files: int
    records: int
    columns: tuple[ColumnProfile, ...]
    label: str = ""
    details: tuple[tuple[str, str], ...] = ()
    faults: tuple[Fault, ...] = ()
    measures: tuple[ColumnProfile, ...] = ()
    relations: tuple[tuple[str, str, float], ...] = ()

    def column(self, name: str) -> ColumnProfile | None:
        """The column of this name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a data set is like.

    Attributes:
        tables: by name.
        complete: whether all files were read, not only some of them.
        notes: what was left out.
    """

    tables: tuple[DataTable, ...]
    complete: bool = True
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        return {"schema": SCHEMA, "levels": LEVELS, **asdict(self)}


def read_profile(path: str | Path) -> Profile:
    """The profile of a file.

    Raises:
        InputError: the file cannot be read or is no profile of this version.
    """
    try:
        written = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a profile: {error}") from error
    if not isinstance(written, dict) or written.get("schema") != SCHEMA:
        raise InputError(f"{path} is not a profile: its schema is not {SCHEMA}")
    try:
        tables = tuple(_table(each) for each in written["tables"])
        return Profile(tables, bool(written["complete"]), tuple(written["notes"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is a damaged profile: {error!r}") from error


def _table(written: Mapping[str, Any]) -> DataTable:
    given = dict(written)
    given["columns"] = tuple(_column(each) for each in given["columns"])
    given["measures"] = tuple(_column(each) for each in given.get("measures", ()))
    given["relations"] = tuple((a, b, float(r)) for a, b, r in given.get("relations", ()))
    given["details"] = _pairs(given["details"])
    given["faults"] = tuple(Fault(**each) for each in given["faults"])
    return DataTable(**given)


def _column(written: Mapping[str, Any]) -> ColumnProfile:
    given = dict(written)
    if given["kind"] not in get_args(Kind):
        raise ValueError(f"unknown kind of column: {given['kind']!r}")
    for name in ("numbers", "lengths", "tokens"):
        given[name] = _numbers(given[name])
    given["categories"] = _pairs(given["categories"])
    given["alphabet"] = _pairs(given["alphabet"])
    given["shape"] = None if given["shape"] is None else tuple(given["shape"])
    given["by_label"] = tuple((label, _numbers(each)) for label, each in given["by_label"])
    return ColumnProfile(**given)


def _numbers(written: Mapping[str, Any] | None) -> Numbers | None:
    if written is None:
        return None
    quantiles = tuple(map(float, written["quantiles"]))
    if len(quantiles) != len(LEVELS):
        raise ValueError(f"expected {len(LEVELS)} quantiles, got {len(quantiles)}")
    return Numbers(**{**written, "quantiles": quantiles})


def _pairs(written: Any) -> tuple[tuple[Any, Any], ...]:
    return tuple((first, second) for first, second in written)
