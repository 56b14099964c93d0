"""A folder of a job, made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from epochzero.check.launch import Job, Submission, read_job

Submit = Callable[..., Submission]
One = Callable[..., Job]

FILES = {
    "train.py": "print(1)\n",
    "evaluate.py": "print(2)\n",
    "package/__init__.py": "",
    "package/main.py": "",
    "package/__main__.py": "",
    "src/fit.py": "",
}


@pytest.fixture
def submit(tmp_path: Path) -> Submit:
    """Reads a command in a folder with ``train.py`` and the files given."""

    def read(
        command: str,
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Submission:
        for name, text in {**FILES, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return read_job(command.split(), tmp_path, environment)

    return read


@pytest.fixture
def one(submit: Submit) -> One:
    """The only job of a command of which all could be followed."""

    def read(command: str, *arguments: Mapping[str, str] | None) -> Job:
        found = submit(command, *arguments)
        assert found.unknowns == ()
        assert len(found.jobs) == 1
        return found.jobs[0]

    return read
