"""One row where several writers may come with the same one."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from epochzero.store.schema import Base

__all__ = ["insert_once"]


def insert_once(session: Session, table: type[Base], **values: Any) -> None:
    """Inserts a row unless there is one with its key; that one is left as it is."""
    dialect = session.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    session.execute(insert(table).values(**values).on_conflict_do_nothing())
