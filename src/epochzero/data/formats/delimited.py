"""CSV and TSV: fields of text, one record a row, mostly with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from epochzero.data.formats import Batch, Faults, Format, batches
from epochzero.data.lines import encoding_of, lines, writing
from epochzero.data.model import DataTable

DELIMITERS = (",", "\t", ";", "|")


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    for file in files:
        names, rows = _opened(file, faults)
        yield from batches(file, names, rows, partial(_even, len(names), file, faults))


def _opened(file: Path, faults: Faults) -> tuple[tuple[str, ...], Iterator[list[str]]]:
    """The names of the columns, and the rows after the header."""
    read = lines(file, faults)
    first = next(read, "")
    rows = _rows(chain([first], read), _delimiter(file, first), file, faults)
    top = next(rows, [])
    if _is_header(top):
        return _distinct(top, file, faults), rows
    return tuple(str(n + 1) for n in range(len(top))), chain([top] if top else [], rows)


def _delimiter(file: Path, line: str) -> str:
    if file.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    return max(DELIMITERS, key=line.count)


def _rows(read: Iterator[str], delimiter: str, file: Path, faults: Faults) -> Iterator[list[str]]:
    """Rows that have fields; one that cannot be parsed is noted."""
    reader = csv.reader(read, delimiter=delimiter)
    while True:
        try:
            yield from filter(None, reader)
            return
        except csv.Error as error:
            faults.add("unparsable", file, reader.line_num, str(error))


def _is_header(row: Sequence[str]) -> bool:
    """Whether these are names: a header has no empty cells at its start and no numbers."""
    return bool(row) and not any(map(_is_number, row)) and any(row)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _distinct(names: Sequence[str], file: Path, faults: Faults) -> tuple[str, ...]:
    """The names, with a number behind those that come again."""
    found: dict[str, None] = {}
    for name in names:
        again = 0
        unique = name
        while unique in found:
            again += 1
            unique = f"{name}.{again}"
        if again:
            faults.add("duplicate_column", file, 1, f"{name!r} appears twice")
        found[unique] = None
    return tuple(found)


def _even(
    width: int, file: Path, faults: Faults, rows: list[Sequence[Any]], first: int
) -> list[Sequence[Any]]:
    """Rows as wide as the header."""
    if set(map(len, rows)) == {width}:
        return rows
    made = []
    for number, row in enumerate(rows, first):
        if len(row) != width:
            faults.add(
                "fields", file, number, f"record {number:,} has {len(row)} fields, not {width}"
            )
            row = [*row[:width], *[""] * (width - len(row))]
        made.append(row)
    return made


def _describe(file: Path) -> Mapping[str, str]:
    faults = Faults()
    first = next(lines(file, faults), "")
    delimiter = _delimiter(file, first)
    top = next(csv.reader([first], delimiter=delimiter), [])
    return {
        "delimiter": delimiter,
        "encoding": encoding_of(file),
        "header": "yes" if _is_header(top) else "no",
    }


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    details = dict(table.details)
    with writing(path, details["encoding"]) as out:
        writer = csv.writer(out, delimiter=details["delimiter"], lineterminator="\n")
        if details["header"] == "yes":
            writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    details = _describe(source)
    names, rows = _opened(source, Faults())
    wanted = set(records)
    with writing(target, details["encoding"]) as out:
        writer = csv.writer(out, delimiter=details["delimiter"], lineterminator="\n")
        if details["header"] == "yes":
            writer.writerow(names)
        last = max(wanted, default=0)
        writer.writerows(row for n, row in enumerate(islice(rows, last), 1) if n in wanted)


FORMAT = Format(
    "csv", (".csv", ".tsv"), _read, _write, _copy, _describe, only_texts=True, packed=True
)
