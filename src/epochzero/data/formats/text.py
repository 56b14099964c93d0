"""Plain text: a line is a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochzero.data.formats import Batch, Faults, Format, batches
from epochzero.data.lines import encoding_of, lines, writing
from epochzero.data.model import DataTable


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    for file in files:
        rows = ((line.rstrip("\r\n"),) for line in lines(file, faults))
        yield from batches(file, ("text",), rows)


def _describe(file: Path) -> Mapping[str, str]:
    return {"encoding": encoding_of(file)}


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    encoding = dict(table.details)["encoding"]
    with writing(path, encoding) as out:
        out.writelines(f"{line or ''}\n" for line in columns["text"])


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    wanted = set(records)
    encoding = encoding_of(source)
    with writing(target, encoding) as out:
        out.writelines(line for n, line in enumerate(lines(source, Faults()), 1) if n in wanted)


FORMAT = Format("text", (".txt", ".text"), _read, _write, _copy, _describe, packed=True)
