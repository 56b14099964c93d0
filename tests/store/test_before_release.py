"""Stores of before the release open: no row is lost, and their tables are those of a new store.

`before_release` has the migrations of that time, unchanged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from epochzero.store import schema
from epochzero.store.database import _url, open_database
from tests.store.jobs import is_declared

EARLIER = ["0001", "0002", "0003", "0004", "0005"]
DAY = 86_400.0
ROWS: dict[str, list[dict[str, Any]]] = {
    "chunks": [{"digest": "a" * 32, "size": 1, "data": b"x"}],
    "jobs": [
        {
            "id": "j", "name": "job", "command": ["train"], "folder": "/f", "user": "ann",
            "host": "h", "launcher": "", "target": "T4", "scheduler": {}, "gpus": 2,
            "started": 5 * DAY, "state": "failed", "attempts": 2, "gpu_hours": 3.0,
            "category": "timeout", "fingerprint": "f1",
        }
    ],
    "attempts": [
        {
            "id": number, "job_id": "j", "number": number, "started": 5 * DAY, "state": "failed",
            "exit_code": 1, "gpu_hours": float(number),
        }
        for number in (1, 2)
    ],
    "ranks": [
        {
            "id": number, "attempt_id": number, "host": "h", "pid": 1, "journal": f"/{number}",
            "taken": 1, "heartbeat": 5 * DAY, "started": 5 * DAY, "state": "failed", "why": "",
            "commit": "", "snapshot": {},
        }
        for number in (1, 2)
    ],
    "failures": [
        {
            "id": number, "rank_id": number, "time": 5 * DAY, "fingerprint": "f1",
            "category": "timeout", "dimension": "d", "root_cause": "r", "phase": "training",
            "retry": "fails_again", "confidence": 1.0, "gpu_hours": 1.0, "title": f"title {number}",
            "root_text": "", "diagnosis": {},
        }
        for number in (1, 2)
    ],
    "findings": [
        {
            "id": 1, "rank_id": 2, "rule": "r", "severity": "error", "category": "timeout",
            "path": "p", "line": 1, "message": "m", "finding": {},
        }
    ],
}  # fmt: skip


@pytest.fixture(params=EARLIER)
def earlier(request: pytest.FixtureRequest, address: str) -> str:
    """Address of a store of an earlier version, on each engine, with rows."""
    engine = sa.create_engine(_url(address))
    configuration = Config()
    configuration.set_main_option(
        "script_location", str(Path(__file__).with_name("before_release"))
    )
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "0001")
        _fill(connection)
        command.upgrade(configuration, request.param)
        if request.param >= "0002":
            connection.execute(sa.text("INSERT INTO teams VALUES ('vision', 1.0)"))
        if request.param >= "0004":
            connection.execute(sa.text("INSERT INTO counted VALUES ('', 1, 5)"))
    engine.dispose()
    return address


def _fill(connection: sa.Connection) -> None:
    for name, rows in ROWS.items():
        table = sa.Table(name, sa.MetaData(), autoload_with=connection)
        connection.execute(sa.insert(table), rows)


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based")
def test_a_store_of_before_the_release_opens_with_all_its_rows(earlier: str) -> None:
    database = open_database(earlier)
    with database.read() as session:
        connection = session.connection()
        options = {"include_object": is_declared}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, schema.Base.metadata) == []
        assert context.get_current_revision() == schema.REVISION
        for name, rows in ROWS.items():
            kept = connection.execute(sa.text(f"SELECT count(*) FROM {name}")).scalar_one()
            assert kept == len(rows), name
        job = session.get_one(schema.JobRow, "j")
        assert (job.team, job.title, job.wasted_gpu_hours, job.caught) == ("", "title 2", 2.0, 1)
        assert job.command == ["train"]
        issue = session.get_one(schema.KnownFailure, ("", "f1"))
        assert (issue.first_seen, issue.first_job) == (5 * DAY, "j")
        assert session.get_one(schema.Chunk, "a" * 32).data == b"x"
    database.close()
    open_database(earlier).close()


def test_a_change_after_the_upgrade_is_noted_for_the_sums(earlier: str) -> None:
    database = open_database(earlier)
    with database.write() as session:
        connection = session.connection()
        connection.execute(
            sa.text("INSERT INTO counted SELECT '', 1, 5 WHERE NOT EXISTS (SELECT 1 FROM counted)")
        )
        connection.execute(sa.text("UPDATE jobs SET gpu_hours = 4"))
    with database.read() as session:
        stale = session.execute(sa.text("SELECT team, day FROM stale_days")).all()
        assert [tuple(row) for row in stale] == [("", 5)]
    database.close()
