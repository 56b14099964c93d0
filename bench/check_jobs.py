"""The jobs that check is measured on: those of ``lab/check`` and those of ``lab/jobs``."""

from __future__ import annotations

import glob
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import LAB

__all__ = ["TARGETS", "CheckJob", "Place", "check_jobs", "copied"]

CHECK = LAB / "check"
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
    """

    name: str
    folder: Path
    arguments: tuple[str, ...]
    target: Path
    environment: Mapping[str, str]
    categories: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.categories


def check_jobs() -> list[CheckJob]:
    """All of them: made for check (failing, good), then those of the lab that can be seen."""
    return [*_made("failing"), *_made("good"), *_recorded()]


def copied(job: CheckJob, folder: Path) -> Path:
    """A copy of the job's files alone, as a person would have them."""
    copy = folder / job.folder.name
    shutil.copytree(job.folder, copy, ignore=_descriptions_at(job.folder))
    return copy


def _descriptions_at(top: Path) -> Any:
    def ignored(folder: str, names: list[str]) -> set[str]:
        return DESCRIPTIONS & set(names) if Path(folder) == top else set()

    return ignored


def _made(kind: str) -> Iterator[CheckJob]:
    for folder in sorted(path for path in (CHECK / kind).iterdir() if path.is_dir()):
        words = shlex.split((folder / "command").read_text(encoding="utf-8"))
        command = tuple(one for word in words for one in _matching(word, folder))
        job = CheckJob(f"check/{folder.name}", folder, command, _target(folder), {})
        if kind == "good":
            yield job
        else:
            expected = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
            yield _failing(job, expected, expected)


def _matching(word: str, folder: Path) -> list[str]:
    """The files that the shell would put for a pattern; the word itself where it fits none."""
    return sorted(glob.glob(word, root_dir=folder)) or [word]


def _recorded() -> Iterator[CheckJob]:
    table = tomllib.loads((CHECK / "jobs.toml").read_text(encoding="utf-8"))
    for described in sorted(LAB.glob("jobs/*/job.toml")):
        folder = described.parent
        content = tomllib.loads(described.read_text(encoding="utf-8"))
        target = TARGETS / "lab-recorder.toml"
        command, environment = tuple(content["command"]), content.get("env", {})
        job = CheckJob(f"jobs/{folder.name}", folder, command, target, environment)
        if folder.name in table["visible"]:
            yield _failing(job, content["expect"], table["visible"][folder.name])
        elif content["expect"]["outcome"] == "no_failure":
            yield job


def _target(folder: Path) -> Path:
    own = folder / "target.toml"
    return own if own.is_file() else TARGETS / f"{(folder / 'target').read_text().strip()}.toml"


def _failing(job: CheckJob, failure: Mapping[str, Any], place: Mapping[str, Any]) -> CheckJob:
    return CheckJob(
        job.name,
        job.folder,
        job.arguments,
        job.target,
        job.environment,
        (failure["category"], *failure.get("also", ())),
        tuple(Place(one["path"], one["line"]) for one in (place, *place.get("or_at", ()))),
    )
