"""A service over a store of made jobs, asked without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from epochzero.store.database import open_database
from epochzero.store.schema import JobRow
from epochzero.store.teams import add_team, add_token
from epochzero.web.app import create_app
from epochzero.web.settings import Settings
from tests.web.pages.made import fill


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store that is filled once; tests take copies of it."""
    folder = tmp_path_factory.mktemp("made")
    database = open_database(folder / "made.db")
    fill(database, folder)
    database.close()
    return folder / "made.db"


def opened(store: Path) -> Iterator[TestClient]:
    """A client of a service that asks for no token, as on loopback."""
    settings = Settings(store=str(store), folder=store.parent / "spool", authentication=False)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def client(made: Path, tmp_path: Path) -> Iterator[TestClient]:
    """Of a service with the made jobs."""
    yield from opened(Path(shutil.copy(made, tmp_path / "store.db")))


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[TestClient]:
    """Of a service to which no job was sent yet."""
    yield from opened(tmp_path / "empty.db")


@pytest.fixture
def teams(tmp_path: Path, made: Path) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """A service with authentication, where all jobs but one are the team vision's."""
    store = tmp_path / "store.db"
    store.write_bytes(made.read_bytes())
    database = open_database(store)
    tokens = {}
    for team in ("vision", "speech"):
        add_team(database, team)
        tokens[team] = add_token(database, team, "ann", "writer")
    tokens["reader"] = add_token(database, "vision", "bob", "reader")
    with database.write() as session:
        session.query(JobRow).update({"team": "vision"})
        session.query(JobRow).filter(JobRow.id == "ranks").update({"team": "speech"})
    database.close()
    with TestClient(
        create_app(Settings(store=str(store), folder=tmp_path / "spool")),
        base_url="http://localhost",
        follow_redirects=False,
    ) as client:
        yield client, tokens
