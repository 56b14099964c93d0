"""Exports the store as tables: JSON Lines, CSV or Parquet, one file per table.

The columns are those of `epochzero.store.schema`; tables of ranks start with ``job_id`` and ``attempt``.
``docs/store.md`` describes them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Select, select

from epochzero.errors import InputError, writing
from epochzero.store import schema
from epochzero.store.database import Database
from epochzero.store.queries import EVERY_JOB, JobFilter, filtered

_OF_RANK = (
    schema.FailureRow,
    schema.FindingRow,
    schema.RankedPlace,
    schema.SampleRow,
    schema.ProgressRow,
    schema.EventRow,
    schema.DecisionRow,
    schema.NoteRow,
)
_AT_ONCE = 20_000

Row = Mapping[str, Any]


def export(
    database: Database, folder: Path, form: str, wanted: JobFilter = EVERY_JOB
) -> dict[str, int]:
    """Writes the jobs that match a filter, with all their records.

    Args:
        folder: output directory; created if it does not exist.
        form: one of `FORMATS`.
        wanted: the filter.

    Returns:
        Number of rows per table.

    Raises:
        InputError: a file cannot be written, or the format is Parquet and pyarrow is not installed.
    """
    write = _WRITERS[form]
    counts: dict[str, int] = {}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, query in _tables(wanted):
            columns = [column["name"] for column in query.column_descriptions]
            path = folder / f"{name}.{form}"
            counts[name] = write(path, columns, _rows(database, query))
    return counts


def _tables(wanted: JobFilter) -> Iterator[tuple[str, Select[Any]]]:
    jobs, attempts, ranks = schema.JobRow, schema.AttemptRow, schema.Rank
    identities = filtered(wanted).with_only_columns(jobs.id)
    oldest_first = (jobs.started, jobs.id)
    yield "jobs", select(*_columns(jobs)).where(jobs.id.in_(identities)).order_by(*oldest_first)
    of_jobs = attempts.job_id.in_(identities)
    yield "attempts", select(*_columns(attempts)).where(of_jobs).order_by(attempts.id)
    front = (attempts.job_id, attempts.number.label("attempt"))
    of_rank = select(*front).join(ranks, ranks.attempt_id == attempts.id).where(of_jobs)
    yield "ranks", of_rank.add_columns(*_columns(ranks)).order_by(ranks.id)
    for table in _OF_RANK:
        rows = of_rank.join(table, table.rank_id == ranks.id)
        order = table.__mapper__.primary_key
        yield table.__tablename__, rows.add_columns(*_columns(table)).order_by(*order)


def _columns(table: type[schema.Base]) -> list[Any]:
    return list(table.__table__.columns)


def _rows(database: Database, query: Select[Any]) -> Iterator[Row]:
    with database.read() as session:
        for row in session.execute(query.execution_options(yield_per=_AT_ONCE)).mappings():
            yield dict(row)


def _write_jsonl(path: Path, columns: Sequence[str], rows: Iterator[Row]) -> int:
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def _write_csv(path: Path, columns: Sequence[str], rows: Iterator[Row]) -> int:
    count = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _flat(value) for name, value in row.items()})
            count += 1
    return count


def _write_parquet(path: Path, columns: Sequence[str], rows: Iterator[Row]) -> int:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError("Parquet requires pyarrow: pip install 'epochzero[data]'") from error
    # All rows at once: the types of sparse columns can only be determined from all rows.
    table = [{name: _flat(value) for name, value in row.items()} for row in rows]
    arrays = {name: [row[name] for row in table] for name in columns}
    parquet.write_table(arrow.table(arrays), path)
    return len(table)


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


_WRITERS: Mapping[str, Callable[[Path, Sequence[str], Iterator[Row]], int]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "parquet": _write_parquet,
}
FORMATS = tuple(_WRITERS)
"""The file formats that jobs can be exported to."""
