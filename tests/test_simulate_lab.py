"""The jobs of lab/simulate are what their files say, as far as that can be told without running them."""

from __future__ import annotations

import ast
import shlex
import tomllib
from pathlib import Path

from epochzero import taxonomy
from epochzero.check.target import parse_target
from tests.catalogs import every

LAB = Path(__file__).resolve().parent.parent / "lab" / "simulate"
FAILING = sorted(path.name for path in (LAB / "failing").iterdir())
GOOD = sorted(path.name for path in (LAB / "good").iterdir())
JOBS = [*(f"failing/{name}" for name in FAILING), *(f"good/{name}" for name in GOOD)]


def test_there_are_enough() -> None:
    assert len(FAILING) >= 40
    assert len(GOOD) >= 15
    assert not set(FAILING) & set(GOOD)


@every("name", JOBS)
def test_a_job_is_whole(name: str) -> None:
    folder = LAB / name
    command = shlex.split((folder / "command").read_text(encoding="utf-8"))
    assert command[0] == "python"
    assert "train.py" in command
    ast.parse((folder / "train.py").read_text(encoding="utf-8"))
    text = (folder / "target.toml").read_text(encoding="utf-8")
    # The places are known when it runs.
    parse_target(text.replace("{here}", "/here").replace("{folder}", "/job"), "target.toml")


@every("name", JOBS)
def test_it_says_how_it_ends_and_why(name: str) -> None:
    told = tomllib.loads((LAB / name / "expected.toml").read_text(encoding="utf-8"))
    assert told.pop("why").endswith(".")
    assert told.pop("ranks", 2) > 1
    if name.startswith("failing/"):
        assert {told.pop("category"), *told.pop("also")} <= taxonomy.categories().keys()
    assert not told
