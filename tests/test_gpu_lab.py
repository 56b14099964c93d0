"""Jobs that failed on a real GPU: what is found in their recorded logs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epochzero.diagnose import find_facts
from epochzero.logs.source import find_logs
from tests.catalogs import every

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnoser

GPU = Path(__file__).resolve().parent.parent / "lab" / "gpu"
RECORDED = sorted(path.parent.name for path in (GPU / "logs").glob("*/facts.json"))


def expected(job: str) -> dict[str, Any]:
    text = (GPU / "jobs" / job / "job.toml").read_text(encoding="utf-8")
    expect: dict[str, Any] = tomllib.loads(text)["expect"]
    return expect


def test_logs_are_recorded() -> None:
    assert len(RECORDED) >= 17


@every("job", RECORDED)
def test_category_and_place(job: str, diagnoser: Diagnoser) -> None:
    expect = expected(job)
    found = diagnoser.diagnose(find_logs([GPU / "logs" / job]), find_facts([GPU / "logs" / job]))
    assert found.outcome == expect["outcome"]
    if "category" not in expect:
        return
    assert found.category in (expect["category"], *expect["also"]), found.root
    if "user_frame" in expect:
        assert found.user_frame is not None
        assert found.user_frame.line == expect["user_frame"]["line"]


def test_the_cost_of_one_gpu_agrees_in_number() -> None:
    command = [sys.executable, "-m", "epochzero", "diagnose", str(GPU / "logs" / "half_overflow")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1 GPU x " in done.stdout


@pytest.mark.parametrize("job", RECORDED)
def test_the_jobs_say_that_they_need_a_gpu(job: str) -> None:
    text = (GPU / "jobs" / job / "job.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["gpus"] == 1
