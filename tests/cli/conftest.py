"""The command line, run within this process."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from epochzero.cli import main
from epochzero.logs.scan import Scanner

# Compiling all patterns anew for every command would take most of the time of these tests.
SCANNERS = cache(Scanner)


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class Command:
    """Runs the command line within this process."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str | Path, stdin: bytes | None = None) -> Ran:
        self._patch.setattr(sys, "argv", ["epochzero", *map(str, arguments)])
        if stdin is not None:
            stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)))
            self._patch.setattr(sys, "stdin", stream)
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capture.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, out, err)


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    monkeypatch.delenv("NO_COLOR", raising=False)
    # Not the jobs of whoever runs the tests; a fixture before this one may have chosen a home.
    if "EPOCHZERO_HOME" not in os.environ:
        monkeypatch.setenv("EPOCHZERO_HOME", str(tmp_path / "home of epochzero"))
    # By import: as an attribute of the package, the room's name means its function.
    monkeypatch.setattr(import_module("epochzero.diagnose.diagnoser"), "Scanner", SCANNERS)
    return Command(monkeypatch, capsys)
