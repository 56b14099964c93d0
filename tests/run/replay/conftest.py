"""What the tests of capture and replay share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from epochzero.run import run as run_job

Captured = Callable[..., Path]


@pytest.fixture
def captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Captured:
    """Runs a program that is captured; answers the folder of its attempt."""

    def run(
        program: str, *words: str, before: Sequence[str] = (), code: int = 1, **variables: str
    ) -> Path:
        (tmp_path / "train.py").write_text(program)
        monkeypatch.chdir(tmp_path)
        ran = run_job(
            [sys.executable, *before, "train.py", *words],
            tmp_path / "home",
            environment={**os.environ, **variables},
            capture=True,
        )
        assert ran.ended.exit_code == code
        return ran.folders[-1]

    return run
