"""A job that is perhaps not run, or not so, fails perhaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import Target, check
from epochzero.check.target.model import Distribution


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


@pytest.mark.parametrize(
    ("handler", "severity"),
    [
        ("import simplejson as json", "error"),
        ("import os; os.system('pip install simplejson'); import simplejson", "warning"),
    ],
)
def test_a_fallback_is_certain_where_what_it_stands_for_is_missing(
    tmp_path: Path, handler: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(
        f"try:\n    import ujson as json\nexcept ImportError:\n    {handler}\n"
    )
    numpy = Distribution("numpy", "2.1.0", ("numpy",))
    target = Target("there", distributions={"numpy": numpy})
    found = check(["python", "train.py"], target, folder=tmp_path, select=["module-missing"])
    assert [one.severity for one in found.findings] == [severity]


@pytest.mark.parametrize(
    ("start", "severity"),
    [
        ("threading.Thread(target=work, args=(1, 2)).start()", "warning"),
        ("work(1, 2)", "error"),
    ],
)
def test_a_thread_that_fails_does_not_end_the_job(
    tmp_path: Path, start: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(f"import threading\n\ndef work(one):\n    pass\n\n{start}\n")
    found = check(["python", "train.py"], Target("there"), folder=tmp_path)
    assert [(one.rule, one.severity) for one in found.findings] == [("argument-count", severity)]
