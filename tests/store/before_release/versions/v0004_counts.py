"""Sums of days that are over, and triggers that note which of them are not right any more.

A writer holds, to its end, a lock on the days that it changes, which many writers may hold at once; who sums
up waits for them. So no job that is written meanwhile is missed. SQLite has one writer at a time anyway.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
WATCHED = "team, started, state, category, fingerprint, target, gpu_hours, wasted_gpu_hours, caught"
# A clock that was wrong by centuries is of no day.
STALE = """
    INSERT INTO stale_days (team, day) SELECT {row}.team, {day}
    WHERE {row}.started >= 0 AND {row}.started < 1e11
    AND EXISTS (SELECT 1 FROM counted c WHERE c.team = {row}.team AND c.days = 1 AND c.day = {day})
    AND NOT EXISTS (SELECT 1 FROM stale_days s WHERE s.team = {row}.team AND s.day = {day});
"""
LOCK = """
    IF {row}.started >= 0 AND {row}.started < 1e11 THEN
        PERFORM pg_advisory_xact_lock_shared(
            hashtext({row}.team), CAST(floor({row}.started / 86400 / 32) AS integer));
    END IF;
"""
ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


def upgrade() -> None:
    """Makes the tables, empty, and the triggers."""
    op.drop_index("ix_jobs_newest", "jobs")
    op.create_index("ix_jobs_newest", "jobs", ["team", "started", "id", "name", "fingerprint"])
    op.create_index("ix_known_failures_team_merged_into", "known_failures", ["team", "merged_into"])
    op.create_table(
        "counted",
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("days", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team", "days", "day", name=op.f("pk_counted")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "stale_days",
        sa.Column("id", ID, nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stale_days")),
    )
    op.create_index("ix_stale_days_team_day", "stale_days", ["team", "day"])
    op.create_table(
        "day_counts",
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours", sa.Float(precision=53), nullable=False),
        sa.Column("wasted_gpu_hours", sa.Float(precision=53), nullable=False),
        sa.Column("caught", sa.BigInteger(), nullable=False),
        sa.Column("caught_gpu_hours", sa.Float(precision=53), nullable=False),
        sa.Column("last", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint(
            "team", "day", "state", "category", "target", name=op.f("pk_day_counts")
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "failure_counts",
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("days", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours", sa.Float(precision=53), nullable=False),
        sa.Column("first", sa.Float(precision=53), nullable=False),
        sa.Column("last", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint(
            "team", "days", "day", "fingerprint", "category", name=op.f("pk_failure_counts")
        ),
        sqlite_with_rowid=False,
    )
    make = _on_postgresql if op.get_bind().dialect.name == "postgresql" else _on_sqlite
    for event, rows in ROWS.items():
        make(event, rows)


def _on_postgresql(event: str, rows: tuple[str, ...]) -> None:
    name = f"jobs_stale_{event.lower()}"
    day = "CAST(floor({row}.started / 86400) AS bigint)"
    body = "".join(LOCK.format(row=row) + _stale(row, day) for row in rows)
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
    return STALE.format(row=row, day=day.format(row=row))


def _when(event: str) -> str:
    return f"UPDATE OF {WATCHED}" if event == "UPDATE" else event
