"""JSON lines: an object a line. Keys of objects within it become columns such as ``a.b``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from epochzero.data.formats import BATCH, Batch, Faults, Format
from epochzero.data.lines import encoding_of, lines, writing
from epochzero.data.model import DataTable

DEEPEST = 4


def flat(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """The values of an object by their path, at most 4 levels deep.

    >>> dict(flat({"id": 1, "image": {"width": 2}}))
    {'id': 1, 'image.width': 2}
    """
    for key, inner in value.items():
        if isinstance(inner, dict) and inner and depth < DEEPEST:
            yield from flat(inner, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", inner


def nested(record: Mapping[str, Any]) -> dict[str, Any]:
    """The object of values by their path; what has none is left out.

    >>> nested({"id": 1, "image.width": 2})
    {'id': 1, 'image': {'width': 2}}
    """
    made: dict[str, Any] = {}
    for path, value in record.items():
        *folders, name = path.split(".")
        inner = made
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[name] = value
    return made


def by_columns(file: Path, records: Iterator[Mapping[str, Any]]) -> Iterator[Batch]:
    """Objects in batches of columns; a key that an object does not have is missing."""
    first = 1
    while block := [dict(flat(record)) for record in islice(records, BATCH)]:
        names = dict.fromkeys(name for record in block for name in record)
        yield Batch((file,), first, {n: [record.get(n) for record in block] for n in names})
        first += len(block)


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    for file in files:
        yield from by_columns(file, _records(file, faults))


def _records(file: Path, faults: Faults) -> Iterator[Mapping[str, Any]]:
    """One record for each line that is not blank; an empty one where a line is no object."""
    for number, line in enumerate(lines(file, faults), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.add("unparsable", file, number, f"line {number:,}: {error}")
            value = {}
        if not isinstance(value, dict):
            faults.add("unparsable", file, number, f"line {number:,} is not an object")
            value = {}
        yield value


def _describe(file: Path) -> Mapping[str, str]:
    return {"encoding": encoding_of(file)}


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    encoding = dict(table.details)["encoding"]
    with writing(path, encoding) as out:
        for row in zip(*columns.values(), strict=True):
            record = nested(dict(zip(columns, row, strict=True)))
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    wanted = set(records)
    filled = (line for line in lines(source, Faults()) if line.strip())
    with writing(target, encoding_of(source)) as out:
        out.writelines(line for n, line in enumerate(filled, 1) if n in wanted)


FORMAT = Format("jsonl", (".jsonl", ".ndjson"), _read, _write, _copy, _describe, packed=True)
