"""Training programs that are really run under `epochzero run`."""

from __future__ import annotations

from tests.run.conftest import kept, preloaded_run, run

__all__ = ["kept", "preloaded_run", "run"]
