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
from tests.catalogs import every

LAB = Path(__file__).resolve().parent.parent / "lab"
CHECK, DRY, FRESH = LAB / "check", LAB / "dry", LAB / "fresh"
COLLECTIONS = (CHECK, DRY, FRESH)


def folders(kind: str) -> list[Path]:
    """Those of all collections: ``failing`` or ``good``."""
    every = [path for collection in COLLECTIONS for path in (collection / kind).iterdir()]
    return sorted(path for path in every if path.is_dir())


def named(folder: Path) -> str:
    """The collection and the name."""
    return f"{folder.parent.parent.name}/{folder.name}"


FAILING, GOOD = folders("failing"), folders("good")
TARGETS = sorted(path for each in COLLECTIONS for path in each.glob("targets/*.toml"))
TABLE: dict[str, Any] = tomllib.loads((CHECK / "jobs.toml").read_text(encoding="utf-8"))
DRY_TABLE: dict[str, Any] = tomllib.loads((DRY / "jobs.toml").read_text(encoding="utf-8"))
WHOLE = ("<command>", "<target>")

job = every("folder", [*FAILING, *GOOD], named)
failing = every("folder", FAILING, named)


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


@pytest.mark.parametrize(("of", "fail", "run"), [(CHECK, 40, 30), (DRY, 50, 27), (FRESH, 50, 20)])
def test_there_are_enough_jobs(of: Path, fail: int, run: int) -> None:
    assert sum(folder.is_relative_to(of) for folder in FAILING) >= fail
    assert sum(folder.is_relative_to(of) for folder in GOOD) >= run


@failing
def test_the_expected_line_holds_what_is_said(folder: Path) -> None:
    said = expected(folder)
    assert said["code"]
    assert line_of(folder, said) == said["code"]
    assert said["what"].endswith(".")
    assert said["source"]
    for place in said.get("or_at", ()):
        assert place["path"] in WHOLE or (folder / place["path"]).is_file()
        assert not place["line"] or line_of(folder, place)


@failing
def test_category_and_phase_are_the_taxonomys(folder: Path) -> None:
    said = expected(folder)
    assert {said["category"], *said["also"]} <= set(taxonomy.categories())
    assert said["phase"] in taxonomy.phases()
    assert said["category"] not in said["also"]


@job
def test_every_source_file_parses(folder: Path) -> None:
    sources = list(folder.rglob("*.py"))
    assert sources
    said = expected(folder) if folder in FAILING else {}
    wrong = folder / said["path"] if said.get("category") == "syntax_error" else None
    for path in set(sources) - {wrong}:
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
        or (word == "compose" and (folder / "docker-compose.yml").is_file())
    ]
    assert named


@job
def test_the_target_is_one_that_is_there(folder: Path) -> None:
    if (folder / "target.toml").is_file():  # a platform of its own
        assert tomllib.loads((folder / "target.toml").read_text(encoding="utf-8"))["name"]
        return
    name = (folder / "target").read_text(encoding="utf-8").strip()
    assert folder.parent.parent / "targets" / f"{name}.toml" in TARGETS


@every("path", TARGETS)
def test_targets_have_their_name_and_a_python(path: Path) -> None:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    assert content["format"] == 1
    assert content["name"] == path.stem
    assert content["python"]


def test_every_failing_job_of_the_lab_is_judged_once() -> None:
    failing = {path.parent.name for path in LAB.glob("jobs/*/job.toml")}
    failing = {name for name in failing if not name.startswith("good_")}
    visible, hidden = set(TABLE["visible"]), set(TABLE["hidden"])
    assert not visible & hidden
    assert visible | hidden == failing


def test_every_job_that_reading_cannot_see_is_judged_for_the_dry_run_once() -> None:
    judged = [
        *DRY_TABLE["visible"],
        *(name for group in DRY_TABLE["hidden"].values() for name in group),
    ]
    assert sorted(judged) == sorted(TABLE["hidden"])


@every("name", DRY_TABLE["visible"])
def test_a_job_that_a_dry_run_can_see_has_a_place(name: str) -> None:
    folder = LAB / "jobs" / name
    frame = tomllib.loads((folder / "job.toml").read_text(encoding="utf-8"))["expect"]["user_frame"]
    assert line_of(folder, {"path": frame["file"], "line": frame["line"]})


@every("name", sorted(TABLE["visible"]))
def test_the_place_in_a_job_of_the_lab_is_there(name: str) -> None:
    folder = LAB / "jobs" / name
    said = TABLE["visible"][name]
    for place in (said, *said.get("or_at", ())):
        assert place["path"] in WHOLE or (folder / place["path"]).is_file()
        assert place["path"] in WHOLE or not place["line"] or line_of(folder, place)
