"""The jobs that check is measured on: of ``lab/check``, ``lab/fresh``, ``lab/dry`` and ``lab/jobs``."""

from __future__ import annotations

import glob
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import LAB

__all__ = ["TARGETS", "CheckJob", "Place", "check_jobs", "copied", "dry_jobs", "fresh_jobs"]

CHECK, DRY, FRESH = LAB / "check", LAB / "dry", LAB / "fresh"
TARGETS = CHECK / "targets"
DESCRIPTIONS = frozenset({"about", "command", "expected.toml", "job.toml", "target", "target.toml"})
"""Files that describe a job and are not part of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file and a line; line 0 for the file, the command line or the target as a whole."""

    path: str
    line: int

    def near(self, path: str, line: int) -> bool:
        """Whether a finding there names this place, give or take a line."""
        return path == self.path and (not self.line or abs(line - self.line) <= 1)


@dataclass(frozen=True, slots=True)
class CheckJob:
    """A job, its platform, and what a check must find in it.

    Attributes:
        name: of its folder, after that of the collection: ``check/wrong_case``, ``jobs/wrong_case``.
        folder: its files.
        arguments: the command line, by words.
        target: file of the platform.
        environment: variables that are set where the command is given.
        categories: of the failure, the strict one first; empty for a good job.
        places: of the failure, the strict one first.
        run: whether the failure can be seen only by running it.
    """

    name: str
    folder: Path
    arguments: tuple[str, ...]
    target: Path
    environment: Mapping[str, str]
    categories: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    run: bool = False

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.categories


def check_jobs() -> list[CheckJob]:
    """Made for check (failing, good), then those of the lab that can be seen by reading."""
    return [*_made(CHECK, "failing"), *_made(CHECK, "good"), *_recorded()]


def fresh_jobs() -> list[CheckJob]:
    """Made for check by people who had not seen its rules (failing, good)."""
    return [*_made(FRESH, "failing"), *_made(FRESH, "good")]


def dry_jobs() -> list[CheckJob]:
    """Made for the dry run (failing, good), then those of the lab that only a run can show."""
    table = tomllib.loads((DRY / "jobs.toml").read_text(encoding="utf-8"))
    return [
        *(replace(job, run=not job.good) for job in _made(DRY, "failing")),
        *_made(DRY, "good"),
        *(_run(name) for name in table["visible"]),
    ]


def copied(job: CheckJob, folder: Path) -> Path:
    """A copy of the job's files alone, as a person would have them."""
    copy = folder / job.folder.name
    shutil.copytree(job.folder, copy, ignore=_descriptions_at(job.folder))
    return copy


def _descriptions_at(top: Path) -> Any:
    def ignored(folder: str, names: list[str]) -> set[str]:
        return set(names) & DESCRIPTIONS if Path(folder) == top else set()

    return ignored


def _made(collection: Path, kind: str) -> Iterator[CheckJob]:
    for folder in sorted(path for path in (collection / kind).iterdir() if path.is_dir()):
        words = shlex.split((folder / "command").read_text(encoding="utf-8"))
        command = tuple(one for word in words for one in _matching(word, folder))
        job = CheckJob(f"{collection.name}/{folder.name}", folder, command, _target(folder), {})
        if kind == "good":
            yield job
        else:
            expected = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
            yield _failing(job, expected, (expected, *expected.get("or_at", ())))


def _matching(word: str, folder: Path) -> list[str]:
    """The files that the shell would put for a pattern; the word itself where it fits none."""
    return sorted(glob.glob(word, root_dir=folder)) or [word]


def _recorded() -> Iterator[CheckJob]:
    table = tomllib.loads((CHECK / "jobs.toml").read_text(encoding="utf-8"))["visible"]
    for described in sorted(LAB.glob("jobs/*/job.toml")):
        job, expect = _of_the_lab(described.parent)
        if place := table.get(described.parent.name):
            yield _failing(job, expect, (place, *place.get("or_at", ())))
        elif expect["outcome"] == "no_failure":
            yield job


def _run(name: str) -> CheckJob:
    job, expect = _of_the_lab(LAB / "jobs" / name)
    frame = expect["user_frame"]
    place = {"path": frame["file"], "line": frame["line"]}
    return replace(_failing(job, expect, [place]), run=True)


def _of_the_lab(folder: Path) -> tuple[CheckJob, Mapping[str, Any]]:
    """A recorded job, and what its diagnosis must find."""
    content = tomllib.loads((folder / "job.toml").read_text(encoding="utf-8"))
    target = TARGETS / "lab-recorder.toml"
    command, environment = tuple(content["command"]), content.get("env", {})
    name = f"jobs/{folder.name}"
    return CheckJob(name, folder, command, target, environment), content["expect"]


def _target(folder: Path) -> Path:
    own, targets = folder / "target.toml", folder.parent.parent / "targets"
    return own if own.is_file() else targets / f"{(folder / 'target').read_text().strip()}.toml"


def _failing(
    job: CheckJob, failure: Mapping[str, Any], places: Sequence[Mapping[str, Any]]
) -> CheckJob:
    return replace(
        job,
        categories=(failure["category"], *failure.get("also", ())),
        places=tuple(Place(one["path"], one["line"]) for one in places),
    )
