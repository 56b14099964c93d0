"""What the tests of capture and replay share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path

import pytest

from epochzero.run import run as run_job

Captured = Callable[..., Path]


def capture_of(
    top: Path,
    program: str,
    *words: str,
    before: Sequence[str] = (),
    code: int = 1,
    **variables: str,
) -> Path:
    """Runs a program in a directory, captured; answers the folder of its attempt."""
    (top / "train.py").write_text(program)
    with chdir(top):
        ran = run_job(
            [sys.executable, *before, "train.py", *words],
            top / "home",
            environment={**os.environ, **variables},
            capture=True,
        )
    assert ran.ended.exit_code == code
    return ran.folders[-1]


@pytest.fixture
def captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Captured:
    """Runs a program that is captured; answers the folder of its attempt."""
    monkeypatch.chdir(tmp_path)
    return partial(capture_of, tmp_path)
