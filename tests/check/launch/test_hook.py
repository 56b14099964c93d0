"""Under pre-commit the first `python` on the path is the hook's own, not the project's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epochzero.check.launch import read_job


def python(folder: Path) -> Path:
    file = folder / "bin" / "python"
    file.parent.mkdir(parents=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("hook", "project", "active", "expected"),
    [
        (False, True, True, "hook"),
        (True, True, True, "job/.venv"),
        (True, False, True, "active"),
        (True, False, False, None),
    ],
)
def test_the_interpreter_of_a_hook_is_not_that_of_the_job(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hook: bool,
    project: bool,
    active: bool,
    expected: str | None,
) -> None:
    made = {name: python(tmp_path / name) for name in ("hook", "active")}
    if project:
        made["job/.venv"] = python(tmp_path / "job/.venv")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "hook"))
    (tmp_path / "job").mkdir(exist_ok=True)
    (tmp_path / "job/train.py").write_text("print(1)\n")
    path = [tmp_path / "hook/bin", *([tmp_path / "active/bin"] if active else []), "/usr/bin"]
    environment = {"PATH": ":".join(map(str, path))} | ({"PRE_COMMIT": "1"} if hook else {})
    (job,) = read_job(["python", "train.py"], tmp_path / "job", environment).jobs
    assert job.interpreter == (None if expected is None else made[expected])
