"""Backup of a complete store in one file, and restore; the format is the same for both databases.

The file contains JSON lines, compressed with zstd: a header, then each row with the name of its table. It is a
consistent snapshot of the store, taken while others write.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Column, LargeBinary, Table, insert, select
from sqlalchemy.orm import Session

from epochzero import zstd
from epochzero.errors import InputError
from epochzero.store.database import Database
from epochzero.store.schema import REVISION, Base

SCHEMA = "epochzero.backup/1"
_AT_ONCE = 2000


def back_up(database: Database, file: Path) -> int:
    """Writes all tables to a file, atomically.

    Returns:
        Number of rows.

    Raises:
        InputError: the file cannot be written or already exists.
    """
    making = file.with_name(file.name + ".part")
    if file.exists():
        raise InputError(f"{file} already exists")
    try:
        with (
            open(making, "xb", opener=_private) as raw,
            zstd.ZstdFile(raw, "wb") as out,
        ):
            count = _write(database, out)
        making.rename(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        making.unlink(missing_ok=True)
    return count


def _private(path: str, flags: int) -> int:
    # A backup contains the same logs and commands as the store, whose file only its owner may read.
    return os.open(path, flags, 0o600)


def restore(database: Database, file: Path) -> int:
    """Fills an empty store from a backup, atomically.

    Returns:
        Number of rows.

    Raises:
        InputError: the file is not a backup, is truncated or has another version; or the store is not empty.
    """
    try:
        with (
            open(file, "rb") as raw,
            zstd.ZstdFile(raw) as text,
            database.write() as session,
        ):
            return _read(session, _lines(text), str(file))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (zstd.ZstdError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not a complete backup: {error}") from error


def _write(database: Database, out: zstd.ZstdFile) -> int:
    count = 0
    with database.read() as session:
        if database.is_postgresql:
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        _put(out, {"schema": SCHEMA, "revision": REVISION})
        for table in Base.metadata.sorted_tables:
            if table.info.get("derived"):
                continue
            rows = session.execute(select(table).execution_options(yield_per=_AT_ONCE))
            for row in rows:
                _put(out, [table.name, [_plain(value) for value in row]])
                count += 1
        _put(out, {"rows": count})
    return count


def _read(session: Session, lines: Iterator[Any], name: str) -> int:
    head = next(lines, None)
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise InputError(f"{name} is not a backup of a store")
    if head["revision"] != REVISION:
        raise InputError(
            f"{name} has schema {head['revision']}, but this version of EpochZero uses {REVISION}"
        )
    tables = {table.name: table for table in Base.metadata.sorted_tables}
    for table in tables.values():
        if session.execute(select(table).limit(1)).first() is not None:
            raise InputError(
                f"the store is not empty: the table {table.name} has rows; restore into an empty store"
            )
    count = 0
    waiting: list[list[Any]] = []
    at = ""
    for line in lines:
        if isinstance(line, dict):
            _insert(session, tables.get(at), waiting)
            if line["rows"] != count:
                raise InputError(
                    f"{name}: {line['rows']:,} rows were written, but {count:,} are present"
                )
            _count_on(session, tables.values())
            return count
        if line[0] != at or len(waiting) >= _AT_ONCE:
            _insert(session, tables.get(at), waiting)
            at, waiting = line[0], []
        waiting.append(line[1])
        count += 1
    raise InputError(f"{name} is truncated after {count:,} rows")


def _insert(session: Session, table: Table | None, rows: list[list[Any]]) -> None:
    if table is not None and rows:
        columns = list(table.columns)
        session.execute(
            insert(table),
            [
                {
                    column.name: _value(column, value)
                    for column, value in zip(columns, row, strict=True)
                }
                for row in rows
            ],
        )


def _count_on(session: Session, tables: Iterable[Table]) -> None:
    """PostgreSQL generates IDs from sequences, which must continue after the restored rows."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for table in tables:
        if "id" in table.columns and isinstance(table.columns["id"].type, sqlalchemy.BigInteger):
            last = select(sqlalchemy.func.max(table.columns["id"])).scalar_subquery()
            sequence = sqlalchemy.func.pg_get_serial_sequence(table.name, "id")
            session.execute(select(sqlalchemy.func.setval(sequence, last)).where(last.is_not(None)))


def _put(out: zstd.ZstdFile, value: Any) -> None:
    out.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")


def _lines(text: Any) -> Iterator[Any]:
    held = b""
    while data := text.read(1 << 20):
        *whole, held = (held + data).split(b"\n")
        yield from map(json.loads, whole)


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _value(column: Column[Any], value: Any) -> Any:
    return base64.b64decode(value) if isinstance(column.type, LargeBinary) else value
