"""Inserts many rows in one statement, also with concurrent writers of the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Table, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from epochzero.store.schema import Base

Rows = Sequence[Mapping[str, Any]]
"""Rows as mappings from column names to values; all rows have the same columns."""


def insert_rows(session: Session, table: type[Base], rows: Rows) -> None:
    """Inserts rows that cannot conflict with existing ones."""
    if rows:
        session.execute(insert(_table(table)), rows)


def insert_once(session: Session, table: type[Base], **values: Any) -> None:
    """Inserts a row unless its key exists; an existing row is not changed."""
    insert_each_once(session, table, [values])


def insert_each_once(session: Session, table: type[Base], rows: Rows) -> None:
    """Inserts the rows whose keys do not exist."""
    if rows:
        session.execute(_insert(session, table).on_conflict_do_nothing(), rows)


def insert_or_update(session: Session, table: type[Base], key: Sequence[str], rows: Rows) -> None:
    """Inserts rows; existing rows with the same key are updated."""
    if rows:
        new = _insert(session, table)
        changed = {name: new.excluded[name] for name in rows[0] if name not in key}
        session.execute(new.on_conflict_do_update(index_elements=key, set_=changed), rows)


def _insert(session: Session, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    return (postgresql.insert if is_postgresql else sqlite.insert)(_table(table))


def _table(table: type[Base]) -> Table:
    """The table of a mapped class; inserting through the class itself is much slower."""
    return cast("Table", table.__table__)
