"""``epochzero diagnose --out``: many logs into one table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command

LOG = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nKeyError: 'lr'\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text(LOG)
    (folder / "b.log").write_text("epoch 1 loss 0.5\nTraining completed.\n")
    return folder


def test_many_logs_become_a_table(run: Command, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("diagnose", logs, "--out", out, "--workers", "1")
    assert first.code == 0
    assert "2: 1 failed, 1 no failure" in first.out
    assert "Key Not Found 100.0" in first.out
    assert "1 part\n" in first.out
    again = run("diagnose", logs, "--out", out, "--workers", "1", "-f", "json")
    summary = json.loads(again.out)
    assert summary["schema"] == "epochzero.diagnoses/1"
    assert (summary["parts"], summary["parts_before"]) == (1, 1)
    pytest.importorskip("matplotlib")
    studied = run("study", "failures", out, "--out", tmp_path / "report", "-f", "json")
    assert json.loads(studied.out)["categories"]["key_not_found"]["count"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--workers", "2"], "--workers requires --out"),
        (["--engine", "ray"], "--engine requires --out"),
        (["--out", "o", "--each"], "--each applies to one job"),
        (["--out", "o", "--exit-code", "1"], "--exit-code applies to one job"),
        (["--out", "o", "-f", "markdown"], "text or json"),
        (["--out", "o", "other.log"], "exactly one SOURCE"),
        (["--out", "o", "--address", "auto"], "requires --engine ray"),
        (["--out", "o", "--workers", "0"], "0 is not in the range"),
    ],
)
def test_options_that_do_not_go_together(
    run: Command, logs: Path, arguments: list[str], says: str
) -> None:
    done = run("diagnose", logs, *arguments)
    assert done.code == 2
    assert says in done.err


def test_ray_that_is_not_installed(
    run: Command, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run("diagnose", logs, "--out", tmp_path / "out", "--engine", "ray")
    assert done.code == 2
    assert "pip install 'epochzero[ray]'" in done.err
