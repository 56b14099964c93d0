"""Bug reports with their fixes from public collections, as records of the shared format.

| input | format |
|---|---|
| a JSON Lines file with ``fix`` | the shared format (``docs/study.md``), also BuGL's in it |
| a JSON Lines or Parquet file with ``problem_statement`` | SWE-bench |
| a directory with XML or JSON files | Denchmark |
| a directory with ``project.info`` files | BugsInPy |
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochzero.errors import InputError, reading
from epochzero.logs.source import GZIP
from epochzero.study.localization.readers import bugsinpy, denchmark, shared, swebench
from epochzero.study.parquet import is_parquet, parquet_rows

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reports:
    """Bug reports that were read.

    Attributes:
        source: path.
        records: of the shared format, each with its own id.
        left_out: number of unusable reports by reason.
    """

    source: str
    records: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, int]


def read_reports(path: Path) -> Reports:
    """Read the bug reports of a file or directory, whose format is detected.

    Raises:
        InputError: it cannot be read, or its format is unknown.
    """
    left_out: Counter[str] = Counter()
    records: dict[str, Record] = {}
    for value in _read(path):
        if isinstance(value, str):
            left_out[value] += 1
        elif value["id"] in records:
            left_out["has the id of an earlier report"] += 1
        else:
            records[value["id"]] = value
    return Reports(path.name, tuple(records.values()), dict(left_out))


def _read(path: Path) -> Iterator[Record | str]:
    with reading(path):
        if path.is_dir():
            yield from _folder(path)
        else:
            yield from map(_record, _rows(path))


def _folder(path: Path) -> Iterator[Record | str]:
    projects = sorted(path.rglob("project.info"))
    reports = sorted(path.rglob("*.xml")) or sorted(path.rglob("*.json"))
    if projects:
        for project in projects:
            yield from bugsinpy.read(project)
    elif reports:
        yield from map(denchmark.read, reports)
    else:
        raise InputError(
            f"{path} contains neither Denchmark's files (XML or JSON) nor BugsInPy's project.info files"
        )


def _record(row: Record | str) -> Record | str:
    if isinstance(row, str):
        return row
    return swebench.read(row) if "problem_statement" in row else shared.read(row)


def _rows(path: Path) -> Iterator[Record | str]:
    """Yield the objects of a file, or why one is invalid."""
    if is_parquet(path):
        yield from parquet_rows(path)
        return
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    with gzip.open(path) if packed else path.open("rb") as lines:
        try:
            for line in lines:
                if line.strip():
                    yield _object(line)
        except (EOFError, gzip.BadGzipFile) as error:
            raise InputError(f"{path} is truncated or damaged: {error}") from error


def _object(line: bytes) -> Record | str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return found if isinstance(found, dict) else "it is not a JSON object"
