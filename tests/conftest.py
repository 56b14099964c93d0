"""What all tests share: one `Diagnoser`, and how hypothesis looks for counter-examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log, rank_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis, Facts

# The same examples on every run; `pytest --hypothesis-profile=hunt` looks for new ones.
_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "steady", deadline=None, max_examples=100, derandomize=True, suppress_health_check=_SLOW
)
settings.register_profile("hunt", deadline=None, max_examples=3000, suppress_health_check=_SLOW)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def diagnoser() -> Diagnoser:
    """A diagnoser with the built-in catalogue."""
    return Diagnoser()


@pytest.fixture(scope="session")
def diagnose(diagnoser: Diagnoser) -> Callable[..., Diagnosis]:
    """Diagnoses texts: one of them, or several by the name of their log."""

    def run(texts: str | dict[str, str], facts: Facts | None = None) -> Diagnosis:
        named = texts if isinstance(texts, dict) else {"train.log": texts}
        logs = [log_of(text, name) for name, text in named.items()]
        return diagnoser.diagnose(logs) if facts is None else diagnoser.diagnose(logs, facts)

    return run


def log_of(text: str, name: str = "train.log") -> Log:
    """A log in memory; its name tells its rank, as a file's would."""
    return Log(name, text=text.encode(), rank=rank_of(name))
