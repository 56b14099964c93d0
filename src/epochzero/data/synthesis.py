"""Makes data that conform to a profile, and corner cases of them.

Numbers follow the quantiles, classes and categories their shares, numbers next to a label those of
its class. Texts are words of random letters: as long as the known ones, of the same letters, and
with no word of theirs. Everything is drawn from one seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from epochzero.data.formats import formats
from epochzero.data.lines import open_bytes
from epochzero.data.model import LEVELS, ColumnProfile, DataTable, Numbers, Profile
from epochzero.errors import InputError, writing

# The folder of the data that are no corner case.
REGULAR = "regular"
# What is drawn for a list or text is cut here: corner cases must not fill the disk.
LONGEST = 1 << 20
# Records of the corner case whose last batch is odd: one more than a multiple of all usual sizes.
ODD = 257

_Random = np.random.Generator
Values = dict[str, list[Any]]


# The corner cases by name, each with what it is.
CORNERS: Mapping[str, str] = {
    "empty": "no records",
    "single-record": "one record",
    "odd-batch": f"{ODD} records: the last batch has one record for every batch size that is a power of two",
    "longest": "every text, list, image and audio clip has the maximum length",
    "shortest": "every text, list, image and audio clip has the minimum length",
    "extreme": "numbers alternate between the largest and the smallest",
    "missing-values": "every optional value is missing",
    "missing-class": "without the rarest class",
    "single-class": "only the most frequent class",
    "bad-encoding": "the first file contains bytes that are not UTF-8",
    "truncated": "the first file is truncated",
}


def synthesize(
    known: Profile,
    folder: str | Path,
    *,
    count: int = 100,
    seed: int = 0,
    corners: Sequence[str] | None = None,
) -> tuple[Path, ...]:
    """Writes data like those that a profile was made of, one folder for each case.

    Args:
        known: what the data should be like.
        folder: is made; in it ``regular``, and a folder for each corner case that the data can
            have, each laid out as the data were.
        count: records of each table.
        seed: of the random numbers, not negative; the same seed gives the same files.
        corners: the names of the corner cases to write, of `CORNERS`; None for all.

    Returns:
        The folders that were written.

    Raises:
        InputError: a corner case is not known, the folder has something in it already or cannot be
            written, or a format needs a package that is missing.
    """
    names = tuple(CORNERS if corners is None else corners)
    for name in names:
        if name not in CORNERS:
            raise InputError(f"unknown corner case {name!r}; choose from {', '.join(CORNERS)}")
    for table in known.tables:
        if table.format not in formats():
            raise InputError(f"{table.name}: writing the format {table.format!r} is not supported")
    target = Path(folder)
    if count < 1:
        raise InputError(f"{count} is not a valid number of records")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{folder} already exists and is not empty; choose a new directory")
    cases = (REGULAR, *(name for name in names if _applies(name, known)))
    with writing(folder):
        for case in cases:
            for number, table in enumerate(known.tables):
                _write(target / case, case, table, count, np.random.default_rng((seed, number)))
    return tuple(target / case for case in cases)


def _applies(case: str, known: Profile) -> bool:
    """Whether data of the profile can have a corner case."""
    columns = [column for table in known.tables for column in table.columns]
    if case in ("missing-class", "single-class"):
        return any(len(label.categories) > 1 for table in known.tables if (label := _label(table)))
    if case == "missing-values":
        return any(column.missing for column in columns)
    if case == "bad-encoding":
        return any("encoding" in dict(table.details) for table in known.tables)
    return True


def _label(table: DataTable) -> ColumnProfile | None:
    return table.column(table.label) if table.label else None


def _write(folder: Path, case: str, table: DataTable, count: int, random: _Random) -> None:
    """Writes one table of one case."""
    path = _path(folder, table)
    (path if formats()[table.format].record_is_file else path.parent).mkdir(
        parents=True, exist_ok=True
    )
    records = {"empty": 0, "single-record": 1, "odd-batch": ODD}.get(case, count)
    values = _values(table, records, case, random)
    formats()[table.format].write(path, table, values)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if case == "truncated" and files:
        files[0].write_bytes(_truncated(files[0].read_bytes()))
    elif case == "bad-encoding" and files:
        with open_bytes(files[0]) as handle:
            content = handle.read()
        with open_bytes(files[0], "wb") as out:
            out.write(_bad_encoding(content))


def _path(folder: Path, table: DataTable) -> Path:
    """Where the one file of a table goes, or its folder of files.

    Raises:
        InputError: the profile's name of the table leads out of the folder.
    """
    path = folder / table.name.replace("*", "0")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"the table name {table.name!r} is outside {folder}")
    return path


def _bad_encoding(content: bytes) -> bytes:
    """Two bytes that no UTF-8 has, before the last line end."""
    place = max(content.rstrip(b"\r\n").rfind(b"\n") + 1, 0)
    end = len(content.rstrip(b"\r\n"))
    middle = (place + end + 1) // 2
    return content[:middle] + b"\xff\xfe" + content[middle:]


def _truncated(content: bytes) -> bytes:
    """The first half, which never ends with a line."""
    return content[: len(content) // 2].rstrip(b"\r\n")


def _values(table: DataTable, records: int, case: str, random: _Random) -> Values:
    """The values of all columns; those of a label first, since others depend on them."""
    sized = formats()[table.format].record_is_file
    label = _label(table)
    classes: list[Any] | None = None
    if label is not None:
        classes = _column(_of_classes(label, case), records, "", None, random)
    return {
        column.name: classes
        if classes is not None and column.name == table.label
        else _column(column, records, _case_of(column, case, sized=sized), classes, random)
        for column in table.columns
    }


def _case_of(column: ColumnProfile, case: str, *, sized: bool) -> str:
    """The case as it concerns a column: numbers are long only where they are the size of a file."""
    if case in ("longest", "shortest") and not sized and column.kind not in ("text", "list"):
        return ""
    return case


def _of_classes(label: ColumnProfile, case: str) -> ColumnProfile:
    """The label with the classes that a case has; the most frequent come first."""
    kept = {"single-class": label.categories[:1], "missing-class": label.categories[:-1]}
    if len(label.categories) < 2 or case not in kept:
        return label
    return replace(label, categories=kept[case], missing=0, rest=0)


def _column(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    """The values of a column."""
    if column.kind == "empty" or not records:
        return [None] * records
    values = _MADE[column.kind](column, records, case, classes, random)
    share = column.missing / column.count if column.count else 0.0
    if share and case == "missing-values":
        return [None] * records
    absent = random.random(records) < share
    return [None if gone else value for value, gone in zip(values, absent, strict=True)]


def _numbers(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    numbers = column.numbers
    if numbers is None:
        return [None] * records
    if column.unique and numbers.integers and case != "extreme":
        start = int(numbers.min)
        return list(range(start, start + records))
    if column.categories and case not in _ENDS:
        return [int(name) for name in _chosen(column, records, random)]
    if classes is None or not column.by_label or case in _ENDS:
        drawn = _drawn(numbers, records, case, random)
    else:
        drawn = np.empty(records)
        by_label = dict(column.by_label)
        labels = np.array([str(each) for each in classes])
        for name in np.unique(labels):
            here = labels == name
            drawn[here] = _drawn(by_label.get(str(name), numbers), int(here.sum()), case, random)
    whole = numbers.integers and not column.dtype.startswith("float")
    made: list[Any] = [int(n) for n in np.rint(drawn)] if whole else drawn.tolist()
    return _with_nan(made, numbers, random)


def _with_nan(values: list[Any], numbers: Numbers, random: _Random) -> list[Any]:
    """As many that are not a number as were known."""
    share = numbers.nan / (numbers.nan + numbers.inf + numbers.count)
    if not share:
        return values
    gone = random.random(len(values)) < share
    return [float("nan") if nan else value for value, nan in zip(values, gone, strict=True)]


# Which end of a distribution a case takes.
_ENDS = ("longest", "shortest", "extreme")


def _drawn(
    numbers: Numbers, count: int, case: str, random: _Random
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers by the quantiles, between which they are uniform."""
    if case == "extreme":
        return np.where(np.arange(count) % 2, numbers.min, numbers.max)
    if case in _ENDS:
        return np.full(count, numbers.max if case == "longest" else numbers.min)
    drawn = np.interp(random.random(count), LEVELS, numbers.quantiles)
    return np.clip(drawn, numbers.min, numbers.max)


def _sizes(numbers: Numbers | None, count: int, case: str, random: _Random) -> list[int]:
    """Lengths of texts or lists."""
    if numbers is None:
        return [0] * count
    drawn = _drawn(numbers, count, "" if case == "extreme" else case, random)
    return [min(LONGEST, round(n)) for n in drawn.tolist()]


def _chosen(column: ColumnProfile, records: int, random: _Random) -> list[str]:
    """Categories by their shares; rare ones, which a profile does not name, as one of their own."""
    names = [name for name, _ in column.categories]
    shares = [count for _, count in column.categories]
    if column.rest or not names:
        names.append("rare")
        shares.append(column.rest or 1)
    weights = np.array(shares, dtype=np.float64)
    picked = random.choice(len(names), records, p=weights / weights.sum())
    return [names[n] for n in picked]


def _categories(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    return list(_chosen(column, records, random))


def _booleans(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    return [name == "true" for name in _chosen(column, records, random)]


def _texts(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    characters = [character for character, _ in column.alphabet] or ["x"]
    weights = np.array([share for _, share in column.alphabet] or [1.0])
    lengths = _sizes(column.lengths, records, case, random)
    per_word = _characters_per_word(column)
    texts = []
    for number, length in enumerate(lengths):
        drawn = random.choice(len(characters), length, p=weights / weights.sum())
        text = [characters[n] for n in drawn]
        for place in range(per_word, length - 1, per_word + 1):
            text[place] = " "
        texts.append(_distinct("".join(text), number) if column.unique else "".join(text))
    return texts


def _distinct(text: str, number: int) -> str:
    """The text with its number at the end, of the same length where it has room for it."""
    digits = str(number)
    return text[: max(0, len(text) - len(digits))] + digits


def _characters_per_word(column: ColumnProfile) -> int:
    """How many characters a word has on average, without the blank behind it."""
    if column.lengths is None or column.tokens is None or not column.tokens.mean:
        return 8
    return max(1, round((column.lengths.mean + 1) / column.tokens.mean) - 1)


def _dates(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    if column.numbers is None:
        return [None] * records
    seconds = _drawn(column.numbers, records, case, random).tolist()
    moments = [datetime.fromtimestamp(round(each), UTC).replace(tzinfo=None) for each in seconds]
    if column.pattern == "date":
        return [moment.date().isoformat() for moment in moments]
    return [moment.isoformat() for moment in moments]


def _lists(
    column: ColumnProfile, records: int, case: str, classes: Sequence[Any] | None, random: _Random
) -> list[Any]:
    """Lists and arrays of numbers; elements that are none are left out of the profile, and here 0."""
    if column.shape is not None:
        sizes = [int(np.prod(column.shape))] * records
    else:
        sizes = _sizes(column.lengths, records, case, random)
    made = []
    for size in sizes:
        if column.numbers is None:
            elements = np.zeros(size)
        else:
            elements = _drawn(column.numbers, size, "extreme" if case == "extreme" else "", random)
        if column.numbers is None or column.numbers.integers:
            elements = np.rint(elements).astype(np.int64)
        made.append(elements.tolist() if column.shape is None else elements.reshape(column.shape))
    return made


_MADE: Mapping[str, Callable[..., list[Any]]] = {
    "number": _numbers,
    "category": _categories,
    "boolean": _booleans,
    "text": _texts,
    "date": _dates,
    "list": _lists,
}
