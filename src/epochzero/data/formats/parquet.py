"""Parquet, by pyarrow (extra ``data``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochzero.data.formats import BATCH, Batch, Faults, Format, needed
from epochzero.data.formats.json_lines import flat
from epochzero.data.model import DataTable
from epochzero.parquet import STREAMED


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    parquet = needed("pyarrow.parquet", "reading Parquet")
    arrow = needed("pyarrow", "reading Parquet")
    for file in files:
        first = 1
        try:
            with parquet.ParquetFile(file, **STREAMED) as opened:
                for part in opened.iter_batches(BATCH):
                    columns = dict(_columns(part))
                    yield Batch((file,), first, columns)
                    first += part.num_rows
        except (OSError, arrow.ArrowException) as error:
            faults.add("broken", file, message=str(error).splitlines()[0])


def _columns(part: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Columns of a batch; fields of structures become columns of their own."""
    arrow = needed("pyarrow", "reading Parquet")
    for name, column in zip(part.schema.names, part.columns, strict=True):
        if arrow.types.is_struct(column.type):
            rows = [dict(flat(row or {}, f"{name}.")) for row in column.to_pylist()]
            for inner in dict.fromkeys(key for row in rows for key in row):
                yield inner, [row.get(inner) for row in rows]
        elif not column.null_count and (
            arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type)
        ):
            yield name, np.asarray(column)  # type: ignore[misc]
        else:
            yield name, column.to_pylist()


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    arrow = needed("pyarrow", "writing Parquet")
    parquet = needed("pyarrow.parquet", "writing Parquet")
    kinds = {"category": "string", "text": "string", "boolean": "bool_", "empty": "null"}
    arrays = {}
    for column in table.columns:
        values = list(columns[column.name])
        given = column.dtype or kinds.get(column.kind, "")
        kind = getattr(arrow, given)() if given and hasattr(arrow, given) else None
        arrays[column.name] = arrow.array(values, type=kind)
    parquet.write_table(arrow.table(arrays), path)


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    parquet = needed("pyarrow.parquet", "reading Parquet")
    with parquet.ParquetFile(source, **STREAMED) as opened:
        schema = opened.schema_arrow
        with parquet.ParquetWriter(target, schema) as writer:
            first = 1
            for part in opened.iter_batches(BATCH):
                here = [n - first for n in records if first <= n < first + part.num_rows]
                writer.write_batch(
                    part.take(needed("pyarrow", "reading Parquet").array(here, "int64"))
                )
                first += part.num_rows


FORMAT = Format("parquet", (".parquet", ".pq"), _read, _write, _copy)
