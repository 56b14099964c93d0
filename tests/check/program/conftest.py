"""Small programs in a folder of their own, and what reading them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from epochzero.check.launch.model import Job
from epochzero.check.program.interpreter import read_program
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target

Read = Callable[..., Program]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes the files of a program and reads it; one text is ``train.py``."""

    def reading(
        files: str | Mapping[str, str],
        *argv: str,
        script: str = "train.py",
        module: str = "",
        environment: Mapping[str, str | None] | None = None,
        target: Target | None = None,
    ) -> Program:
        given = {script: files} if isinstance(files, str) else files
        for name, text in given.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        run = None if module else tmp_path / script
        job = Job(argv, run, module, tmp_path, environment=environment or {})
        return read_program(job, target or Target("a platform"))

    return reading
