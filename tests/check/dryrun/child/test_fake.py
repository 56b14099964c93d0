"""Programs for a GPU run on a build for the CPU, and fail as they would on the GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from programs import FAIL, RUN  # noqa: E402

sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def ended() -> dict[str, tuple[int, str]]:
    process = subprocess.run(
        [sys.executable, str(HERE / "runner.py")], capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, process.stderr[-2000:]
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    return {row["name"]: (row["status"], row["text"]) for row in rows}


@pytest.mark.parametrize("name", RUN)
def test_an_idiom_runs_to_its_end(name: str, ended: dict[str, tuple[int, str]]) -> None:
    status, text = ended[name]
    assert status == 0
    assert text.splitlines()[-1:] == ["ended"], text


@pytest.mark.parametrize("name", FAIL)
def test_a_mistake_fails_as_on_the_gpu(name: str, ended: dict[str, tuple[int, str]]) -> None:
    status, text = ended[name]
    assert status == 0
    assert FAIL[name][1] in text
