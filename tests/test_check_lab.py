"""The jobs that check is measured on: what their descriptions say must hold in their files."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from epochzero import taxonomy

LAB = Path(__file__).resolve().parent.parent / "lab"
CHECK = LAB / "check"
FAILING = sorted(path.name for path in (CHECK / "failing").iterdir() if path.is_dir())
GOOD = sorted(path.name for path in (CHECK / "good").iterdir() if path.is_dir())
JOBS = [CHECK / "failing" / name for name in FAILING] + [CHECK / "good" / name for name in GOOD]
TARGETS = sorted(path.stem for path in (CHECK / "targets").glob("*.toml"))
TABLE: dict[str, Any] = tomllib.loads((CHECK / "jobs.toml").read_text(encoding="utf-8"))
WHOLE = ("<command>", "<target>")

job = pytest.mark.parametrize("folder", JOBS, ids=lambda folder: folder.name)


def expected(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))


def line_of(folder: Path, place: dict[str, Any]) -> str:
    """The line that a place names; the whole command line for the command."""
    if place["path"] == "<command>":
        return (folder / "command").read_text(encoding="utf-8").strip()
    if not place["line"]:
        return ""
    lines = (folder / place["path"]).read_text(encoding="utf-8").splitlines()
    return lines[place["line"] - 1].strip()


def test_there_are_enough_jobs() -> None:
    assert len(FAILING) >= 40
    assert len(GOOD) >= 30


@pytest.mark.parametrize("name", FAILING)
def test_the_expected_line_holds_what_is_said(name: str) -> None:
    folder = CHECK / "failing" / name
    said = expected(folder)
    assert said["code"]
    assert line_of(folder, said) == said["code"]
    assert said["what"].endswith(".")
    assert said["source"]
    for place in said.get("or_at", ()):
        assert place["path"] in WHOLE or (folder / place["path"]).is_file()
        assert not place["line"] or line_of(folder, place)


@pytest.mark.parametrize("name", FAILING)
def test_category_and_phase_are_the_taxonomys(name: str) -> None:
    said = expected(CHECK / "failing" / name)
    assert {said["category"], *said["also"]} <= set(taxonomy.categories())
    assert said["phase"] in taxonomy.phases()
    assert said["category"] not in said["also"]


@job
def test_every_source_file_parses(folder: Path) -> None:
    sources = list(folder.rglob("*.py"))
    assert sources
    for path in sources:
        ast.parse(path.read_text(encoding="utf-8"), str(path))


@job
def test_the_command_is_words_that_name_a_file_of_the_job(folder: Path) -> None:
    text = (folder / "command").read_text(encoding="utf-8").strip()
    words = shlex.split(text)
    assert words
    assert "\n" not in text
    modules = [word.replace(".", "/") for word in words]
    named = [
        word
        for word in [*re.split(r"[\s;&]+", " ".join(words)), *modules]
        if (folder / word).is_file()
        or (folder / f"{word}.py").is_file()
        or (folder / word).is_dir()
    ]
    assert named


@job
def test_the_target_is_one_that_is_there(folder: Path) -> None:
    assert (folder / "target").read_text(encoding="utf-8").strip() in TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_targets_have_their_name_and_a_python(name: str) -> None:
    content = tomllib.loads((CHECK / "targets" / f"{name}.toml").read_text(encoding="utf-8"))
    assert content["format"] == 1
    assert content["name"] == name
    assert content["python"]


def test_every_failing_job_of_the_lab_is_judged_once() -> None:
    failing = {path.parent.name for path in LAB.glob("jobs/*/job.toml")}
    failing = {name for name in failing if not name.startswith("good_")}
    visible, hidden = set(TABLE["visible"]), set(TABLE["hidden"])
    assert not visible & hidden
    assert visible | hidden == failing


@pytest.mark.parametrize("name", sorted(TABLE["visible"]))
def test_the_place_in_a_job_of_the_lab_is_there(name: str) -> None:
    folder = LAB / "jobs" / name
    said = TABLE["visible"][name]
    for place in (said, *said.get("or_at", ())):
        assert place["path"] in WHOLE or (folder / place["path"]).is_file()
        assert place["path"] in WHOLE or not place["line"] or line_of(folder, place)
