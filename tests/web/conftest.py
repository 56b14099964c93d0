"""A service on a store of its own, and clients of two teams."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from epochzero.store.teams import Role, add_team, add_token
from epochzero.web.app import create_app
from epochzero.web.settings import ServerLimits, Settings
from epochzero.web.state import Service
from tests.waiting import wait_until

LIMITS = ServerLimits(body_bytes=1 << 20, text_bytes=8 << 20, file_bytes=16 << 20)


@dataclass
class Served:
    """A service that runs."""

    client: TestClient
    service: Service

    def token(self, team: str = "red", role: Role = "admin") -> dict[str, str]:
        """The headers of a new token's bearer."""
        add_team(self.service.database, team)
        token = add_token(self.service.database, team, f"{role} of {team}", role)
        return {"Authorization": f"Bearer {token}"}

    def settle(self) -> None:
        """Waits until the store has all that was sent."""
        wait_until(self.service.intake.idle)


@pytest.fixture(autouse=True)
def _is_frozen() -> None:
    """A service that has loaded looks for garbage once, which takes half a second among what pytest holds."""
    gc.freeze()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A service with authentication."""
    settings = Settings(f"sqlite:///{tmp_path}/store.db", tmp_path / "spool", limits=LIMITS)
    app = create_app(settings)
    with TestClient(app) as client:
        yield Served(client, app.state.service)
