"""JSON: one list of objects, or an object that holds such a list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochzero.data.formats import Batch, Faults, Format
from epochzero.data.formats.json_lines import by_columns, nested
from epochzero.data.lines import DAMAGED, encoding_of, open_bytes, writing
from epochzero.data.model import DataTable

# The whole file is read at once; what is larger belongs into JSON lines.
LARGEST_BYTES = 1 << 28


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    for file in files:
        found = _records(file, faults)
        yield from by_columns(file, iter(found))


def _records(file: Path, faults: Faults) -> list[Mapping[str, Any]]:
    """The objects of a file; empty ones for elements that are none."""
    try:
        with open_bytes(file) as handle:
            content = handle.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            message = f"more than {LARGEST_BYTES:,} bytes of one JSON value: use JSON lines"
            faults.add("too_large", file, message=message)
            return []
        text = content.decode(encoding_of(file))
    except DAMAGED as error:
        faults.add("broken", file, message=str(error))
        return []
    except OSError as error:
        faults.add("unreadable", file, message=error.strerror or str(error))
        return []
    except UnicodeDecodeError as error:
        faults.add("not_utf8", file, message=str(error))
        return []
    if not text.strip():
        faults.add("empty_file", file)
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        faults.add("unparsable", file, message=str(error))
        return []
    return [each if isinstance(each, dict) else {"value": each} for each in _listed(value)]


def _listed(value: Any) -> list[Any]:
    """The longest list of objects in an object, or what is given."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists = [each for each in value.values() if isinstance(each, list)]
        return max(lists, key=len, default=[value])
    return [value]


def _describe(file: Path) -> Mapping[str, str]:
    return {"encoding": encoding_of(file)}


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    rows = zip(*columns.values(), strict=True)
    records = [nested(dict(zip(columns, row, strict=True))) for row in rows]
    text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    with writing(path, dict(table.details)["encoding"]) as out:
        out.write(text)


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    found = _records(source, Faults())
    chosen = [found[number - 1] for number in records]
    with writing(target, "utf-8") as out:
        out.write(json.dumps(chosen, ensure_ascii=False, indent=1) + "\n")


FORMAT = Format("json", (".json",), _read, _write, _copy, _describe, packed=True)
