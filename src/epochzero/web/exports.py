"""Rows as CSV, JSON or JSON Lines, streamed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from fastapi.responses import StreamingResponse

from epochzero.store.database import Database
from epochzero.store.queries import JobFilter, JobSummary, job_page

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_JOBS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Export:
    """A table as a file.

    Attributes:
        name: of the file, without suffix.
        columns: of the table.
        rows: a value for each column.
    """

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def table(form: str, export: Export) -> StreamingResponse:
    """The file in a format: ``csv``, ``json`` or ``jsonl``."""
    write, kind = _FORMATS[form]
    headers = {"Content-Disposition": f'attachment; filename="{export.name}.{form}"'}
    return StreamingResponse(write(export), media_type=f"{kind}; charset=utf-8", headers=headers)


def every_job(store: Database, wanted: JobFilter, sort: str) -> Iterator[JobSummary]:
    """The jobs of all pages of a list."""
    after = ""
    while True:
        page = job_page(store, replace(wanted, limit=_JOBS_AT_ONCE), sort=sort, after=after)
        yield from page.jobs
        if not (after := page.after):
            return


def cell(value: object) -> object:
    """A value for CSV; a text that a spreadsheet would evaluate as a formula is marked as text.

    Source: OWASP, "CSV Injection".
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _csv(export: Export) -> Iterator[str]:
    lines = io.StringIO()
    writer = csv.writer(lines)
    for row in chain((export.columns,), export.rows):
        writer.writerow([cell(value) for value in row])
        yield lines.getvalue()
        lines.seek(0)
        lines.truncate()


def _json(export: Export) -> Iterator[str]:
    yield "["
    for number, record in enumerate(_records(export)):
        yield f"{',' * bool(number)}\n{record}"
    yield "\n]\n"


def _json_lines(export: Export) -> Iterator[str]:
    return (f"{record}\n" for record in _records(export))


def _records(export: Export) -> Iterator[str]:
    for row in export.rows:
        yield json.dumps(dict(zip(export.columns, row, strict=True)), ensure_ascii=False)


_FORMATS = {
    "csv": (_csv, "text/csv"),
    "json": (_json, "application/json"),
    "jsonl": (_json_lines, "application/x-ndjson"),
}
