"""A job that is perhaps not run, or not so, fails perhaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import Target, check


@pytest.mark.parametrize(
    ("launch", "severity"),
    [
        ("python train.py\n", "error"),
        ('if [ -e "$(date)" ]; then python train.py; fi\n', "warning"),
        ("python train.py $(cat more)\n", "warning"),
        ('python train.py "$(date)"\n', "error"),
    ],
)
def test_an_uncertain_job_has_no_errors(tmp_path: Path, launch: str, severity: str) -> None:
    (tmp_path / "run.sh").write_text(launch)
    (tmp_path / "train.py").write_text("print(missing)\n")
    found = check(["bash", "run.sh"], Target("there"), folder=tmp_path, select=["undefined-name"])
    assert [one.severity for one in found.findings] == [severity]
