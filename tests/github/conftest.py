"""A server as GitHub's, for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epochzero.github import GitHub
from tests.forge import REPOSITORY, TOKEN, Forge


@pytest.fixture
def forge() -> Iterator[Forge]:
    """The server."""
    with Forge() as running:
        yield running


@pytest.fixture
def github(forge: Forge) -> GitHub:
    """Asks the server, with a token."""
    return GitHub(REPOSITORY, TOKEN, forge.url)
