"""All tables, indexes and triggers of version 0.1.0: in a new store, or in one of before the release.

Stores of before the release have the tables 0001 to 0007. What they lack is found by looking, so that one
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

revision = "0008"
down_revision = None

_OF_LAST = """
    SELECT {columns} FROM attempts a JOIN ranks r ON r.attempt_id = a.id
    JOIN {table} f ON f.rank_id = r.id WHERE a.job_id = jobs.id AND a.number =
    (SELECT max(b.number) FROM attempts b WHERE b.job_id = jobs.id)
"""
_WATCHED = (
    "team, started, state, category, fingerprint, target, gpu_hours, wasted_gpu_hours, caught"
)
_SAME = "j.team = known_failures.team AND j.fingerprint = known_failures.fingerprint"
_ISSUES = (
    "INSERT INTO known_failures (team, fingerprint, resolution, resolved_by, merged_into) "
    "SELECT DISTINCT j.team, j.fingerprint, '', '', '' FROM jobs j WHERE j.fingerprint <> '' "
    f"AND NOT EXISTS (SELECT 1 FROM known_failures WHERE {_SAME})",
    f"UPDATE known_failures SET first_seen = (SELECT min(j.started) FROM jobs j WHERE {_SAME}), "
    f"first_job = coalesce((SELECT j.id FROM jobs j WHERE {_SAME} ORDER BY j.started LIMIT 1), ''), "
    f"regressed = (SELECT min(j.started) FROM jobs j WHERE {_SAME} "
    "AND j.started > known_failures.resolved)",
)
"""Creates the issues of existing jobs."""
_SEARCH = (
    "CREATE VIRTUAL TABLE failure_search USING fts5(words, content='failure_texts', "
    "content_rowid='id', tokenize=\"unicode61 remove_diacritics 0 tokenchars '_'\")",
    "CREATE TRIGGER failure_texts_added AFTER INSERT ON failure_texts BEGIN "
    "INSERT INTO failure_search (rowid, words) VALUES (NEW.id, NEW.words); END",
    "CREATE TRIGGER failure_texts_removed AFTER DELETE ON failure_texts BEGIN "
    "INSERT INTO failure_search (failure_search, rowid, words) "
    "VALUES ('delete', OLD.id, OLD.words); END",
)
"""PostgreSQL has an index over the words instead (`epochzero.store.schema.FailureText`)."""
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
    unchecked = "counted" in before and "checked" not in _columns("day_counts")
    without_issues = "jobs" in before and "owner_rules" not in before
    for table in Base.metadata.sorted_tables:
        if table.name in before:
            _complete_columns(table)
    if untitled:
        _title_jobs()
    if unchecked:
        op.execute("DELETE FROM counted")  # The sums are computed again.
    Base.metadata.create_all(connection)
    for table in Base.metadata.sorted_tables:
        if table.name in before:
            _complete_indexes(table)
    if without_issues:
        for statement in _ISSUES:
            op.execute(statement)
    if "failure_texts" not in before and connection.dialect.name == "sqlite":
        for statement in _SEARCH:
            op.execute(statement)
    if "counted" not in before:
        make = _on_postgresql if connection.dialect.name == "postgresql" else _on_sqlite
        for event, rows in _ROWS.items():
            make(event, rows)


def _columns(table: str) -> list[str]:
    return [column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)]


def _complete_columns(table: sa.Table) -> None:
    """Adds the columns that a table lacks; each has a default for existing rows, or may be empty."""
    there = _columns(table.name)
    for column in table.columns:
        if column.name not in there:
            default = column.server_default
            text = str(default.arg) if isinstance(default, sa.DefaultClause) else None
            added = sa.Column(
                column.name, column.type, nullable=column.nullable, server_default=text
            )
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
