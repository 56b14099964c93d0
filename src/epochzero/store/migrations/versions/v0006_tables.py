"""All tables, indexes and triggers of version 0.1.0: in a new store, or in one of before the release.

Stores of before the release have the tables 0001 to 0005. What they lack is found by looking, so that one
migration serves them all. The next migration that changes a table of these must describe the tables of this one
itself, since `Base.metadata` describes the newest ones.

A trigger notes which sums of past days are not right any more. On PostgreSQL, a writer holds, to its end, a lock
on the days that it changes, which many writers may hold at once; who sums up waits for them. So no job that is
written meanwhile is missed. SQLite has one writer at a time anyway.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from epochzero.store.schema import Base

revision = "0006"
down_revision = None

_OF_LAST = """
    SELECT {columns} FROM attempts a JOIN ranks r ON r.attempt_id = a.id
    JOIN {table} f ON f.rank_id = r.id WHERE a.job_id = jobs.id AND a.number =
    (SELECT max(b.number) FROM attempts b WHERE b.job_id = jobs.id)
"""
_WATCHED = (
    "team, started, state, category, fingerprint, target, gpu_hours, wasted_gpu_hours, caught"
)
# A clock that was wrong by centuries is of no day.
_STALE = """
    INSERT INTO stale_days (team, day) SELECT {row}.team, {day}
    WHERE {row}.started >= 0 AND {row}.started < 1e11
    AND EXISTS (SELECT 1 FROM counted c WHERE c.team = {row}.team AND c.days = 1 AND c.day = {day})
    AND NOT EXISTS (SELECT 1 FROM stale_days s WHERE s.team = {row}.team AND s.day = {day});
"""
_LOCK = """
    IF {row}.started >= 0 AND {row}.started < 1e11 THEN
        PERFORM pg_advisory_xact_lock_shared(
            hashtext({row}.team), CAST(floor({row}.started / 86400 / 32) AS integer));
    END IF;
"""
_ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


def upgrade() -> None:
    """Makes what is missing; all rows stay."""
    connection = op.get_bind()
    before = sa.inspect(connection).get_table_names()
    untitled = "jobs" in before and "title" not in _columns("jobs")
    for table in Base.metadata.sorted_tables:
        if table.name in before:
            _complete_columns(table)
    if untitled:
        _title_jobs()
    Base.metadata.create_all(connection)
    for table in Base.metadata.sorted_tables:
        if table.name in before:
            _complete_indexes(table)
    if "counted" not in before:
        make = _on_postgresql if connection.dialect.name == "postgresql" else _on_sqlite
        for event, rows in _ROWS.items():
            make(event, rows)


def _columns(table: str) -> list[str]:
    return [column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)]


def _complete_columns(table: sa.Table) -> None:
    """Adds the columns that a table lacks; each has a default for the rows that are there."""
    there = _columns(table.name)
    for column in table.columns:
        if column.name not in there:
            default = column.server_default
            assert isinstance(default, sa.DefaultClause)
            assert isinstance(default.arg, str)
            added = sa.Column(column.name, column.type, nullable=False, server_default=default.arg)
            op.add_column(table.name, added)


def _title_jobs() -> None:
    """Fills what the pages show of a job, from the rows of the other tables."""
    title = _OF_LAST.format(columns="f.title", table="failures") + "ORDER BY r.ended, f.id LIMIT 1"
    caught = _OF_LAST.format(columns="1", table="findings")
    op.execute(
        f"UPDATE jobs SET title = coalesce(({title}), ''), caught = CASE WHEN EXISTS ({caught}"
        " AND f.severity = 'error' AND f.category = jobs.category) THEN 1 ELSE 0 END, "
        "wasted_gpu_hours = coalesce((SELECT sum(a.gpu_hours) FROM attempts a "
        "WHERE a.job_id = jobs.id AND a.number > 1 AND a.state = 'failed'), 0)"
    )


def _complete_indexes(table: sa.Table) -> None:
    """Makes the indexes that a table lacks or has over other columns."""
    connection = op.get_bind()
    there = {
        index["name"]: index["column_names"]
        for index in sa.inspect(connection).get_indexes(table.name)
    }
    for index in table.indexes:
        columns = [column.name for column in index.columns]
        if index.name in there and there[index.name] != columns:
            op.drop_index(str(index.name), table.name)
        if there.get(index.name) != columns:
            index.create(connection)


def _on_postgresql(event: str, rows: tuple[str, ...]) -> None:
    name = f"jobs_stale_{event.lower()}"
    day = "CAST(floor({row}.started / 86400) AS bigint)"
    body = "".join(_LOCK.format(row=row) + _stale(row, day) for row in rows)
    op.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {body} RETURN NULL; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name} AFTER {_when(event)} ON jobs FOR EACH ROW EXECUTE FUNCTION {name}()"
    )


def _on_sqlite(event: str, rows: tuple[str, ...]) -> None:
    day = "CAST({row}.started / 86400 AS INTEGER)"
    body = "".join(_stale(row, day) for row in rows)
    op.execute(
        f"CREATE TRIGGER jobs_stale_{event.lower()} AFTER {_when(event)} ON jobs BEGIN {body} END"
    )


def _stale(row: str, day: str) -> str:
    return _STALE.format(row=row, day=day.format(row=row))


def _when(event: str) -> str:
    return f"UPDATE OF {_WATCHED}" if event == "UPDATE" else event
