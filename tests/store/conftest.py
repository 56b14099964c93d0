"""Stores on the real engines: SQLite, and PostgreSQL as an embedded server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from epochzero.store.database import Database, open_database
from tests.store.jobs import Runs
from tests.store.postgresql import running

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Address of the first database of a server that ends with the tests."""
    with running() as server:
        yield server.get_uri()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database, on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/epochzero.db"
    first = sqlalchemy.make_url(request.getfixturevalue("postgresql"))
    name = f"test{next(_numbers)}"
    engine = sqlalchemy.create_engine(
        first.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return first.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    """An open store, on each engine."""
    opened = open_database(address)
    yield opened
    opened.close()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """A folder of runs."""
    return Runs(tmp_path / "runs")
