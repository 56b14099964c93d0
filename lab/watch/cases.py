"""The lab's faulty programs, as the folders describe them.

A case is a faulty program, the healthy one that it was made from, and what is known of the fault.
In `bugs` and `keras` both programs are files; a mutant is a program of `base` with text replaced, and
so are the faulty ones of `fresh` and `families`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

WATCH = Path(__file__).resolve().parent
FRESH = WATCH / "fresh"
FAMILIES = WATCH / "families"
VARIED = WATCH / "varied"
PAIRED = (
    "relations",
    "ranks",
    "ranks_2",
    "ranks_3",
    "silent",
    "objectives",
    "blind",
    "blind_2",
    "blind_3",
    "blind_4",
    "blind_5",
    "blind_6",
)
"""Collections of healthy trainings in ``healthy``, with faults and variants of them in ``cases.toml``."""
EVALUATIONS = WATCH / "evaluations.json"
"""Which held-out programs a script has read, and when: each time makes its figure worth a little less."""
TWINS = ("bugs", "keras")


@dataclass(frozen=True)
class Case:
    """One fault: `about` is what its fault.toml or mutant says."""

    collection: str
    name: str
    faulty: str
    healthy: str
    about: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.collection}/{self.name}"


def twin_cases() -> list[Case]:
    """The bugs of the study, and those in Keras."""
    return [
        Case(
            collection,
            path.parent.name,
            faulty=(path.parent / "faulty.py").read_text(encoding="utf-8"),
            healthy=(path.parent / "fixed.py").read_text(encoding="utf-8"),
            about=tomllib.loads(path.read_text(encoding="utf-8")),
        )
        for collection in TWINS
        for path in sorted(WATCH.glob(f"{collection}/*/fault.toml"))
    ]


def mutants() -> list[Case]:
    """One fault each in a program of `base`."""
    return _edited("mutants", WATCH / "mutants", WATCH / "base")


def fresh_cases() -> list[Case]:
    """One fault each in a training of `fresh`."""
    return _edited("fresh", FRESH / "faulty", FRESH / "healthy")


def family_cases() -> list[Case]:
    """One fault each in a training of `families`."""
    return _edited("families", FAMILIES / "faulty", FAMILIES / "healthy")


def pair_cases(collection: str) -> list[Case]:
    """The faults of one of `PAIRED`, and the healthy variants of its programs, which have no fault in `about`."""
    return _faults_and_variants(WATCH / collection)


def pair_programs(collection: str) -> dict[str, Path]:
    """The healthy trainings of one of `PAIRED`, by name."""
    return _programs(WATCH / collection)


def pair_held_out(collection: str) -> frozenset[str]:
    """The trainings, faults and variants of one of `PAIRED` that are read once, when the searches are finished."""
    return _held_out(WATCH / collection)


def pair_ranks(collection: str) -> dict[str, int]:
    """How many ranks train each program, fault and variant of one of `PAIRED`, by name; none where one process does."""
    stored = tomllib.loads((WATCH / collection / "cases.toml").read_text(encoding="utf-8"))
    ranks = dict[str, int](stored.get("ranks", {}))
    for case in pair_cases(collection) if ranks else ():
        ranks[case.name] = case.about.get("ranks", ranks[case.about["base"]])
    return ranks


def _faults_and_variants(folder: Path) -> list[Case]:
    stored = tomllib.loads((folder / "cases.toml").read_text(encoding="utf-8"))
    return [
        Case(folder.name, name, mutated(program, edits), program, about)
        for kind in ("fault", "variant")
        for name, about in stored.get(kind, {}).items()
        for program in [_programs(folder)[about["base"]].read_text(encoding="utf-8")]
        for edits in [[{"old": old, "new": new} for old, new in about["edits"]]]
    ]


def _programs(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted((folder / "healthy").glob("*.py"))}


def _edited(collection: str, faults: Path, programs: Path) -> list[Case]:
    """The faults of a folder, each made by edits in the program that it names."""
    cases = []
    for path in sorted(faults.glob("*.toml")):
        about = tomllib.loads(path.read_text(encoding="utf-8"))
        program = (programs / f"{about['base']}.py").read_text(encoding="utf-8")
        faulty = mutated(program, about["edits"])
        cases.append(Case(collection, path.stem, faulty, program, about))
    return cases


def mutated(program: str, edits: list[dict[str, str]]) -> str:
    """The program with each text replaced in turn.

    Raises:
        ValueError: a text does not stand there exactly once.

    """
    for edit in edits:
        if (count := program.count(edit["old"])) != 1:
            raise ValueError(f"stands there {count} times: {edit['old']}")
        program = program.replace(edit["old"], edit["new"])
    return program


def all_cases() -> list[Case]:
    return [*twin_cases(), *mutants()]


def held_out_bases() -> frozenset[str]:
    """The bases whose mutants nobody looks at while a detector is built."""
    return _held_out(WATCH / "base")


def held_out_healthy() -> frozenset[str]:
    """The healthy trainings that nobody looks at while a detector is built."""
    return _held_out(WATCH / "healthy")


def held_out_families() -> frozenset[str]:
    """The trainings of `families` that, with their faults, nobody looks at while a detector is built."""
    return _held_out(FAMILIES)


def held_out_varied() -> frozenset[str]:
    """The trainings of `varied` that nobody looks at while a detector is built."""
    return _held_out(VARIED)


def count_evaluation(script: str, programs: Iterable[str], path: Path = EVALUATIONS) -> None:
    """Records that a script has read these held-out programs; nothing where there are none."""
    if names := sorted(programs):
        today = datetime.now(UTC).date().isoformat()
        evaluation = {"date": today, "script": script, "programs": names}
        text = json.dumps([*evaluations(path), evaluation], indent=1)
        path.write_text(f"{text}\n", encoding="utf-8")


def evaluations(path: Path = EVALUATIONS) -> list[dict[str, Any]]:
    """The evaluations of held-out programs so far, each with its date, script and programs."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def _held_out(folder: Path) -> frozenset[str]:
    path = folder / "split.toml"
    return frozenset(tomllib.loads(path.read_text(encoding="utf-8"))["held_out"])


def healthy_programs() -> dict[str, Mapping[str, Any]]:
    """Of each healthy training, by name, what healthy.toml says."""
    return _described(WATCH / "healthy")


def fresh_programs() -> dict[str, Mapping[str, Any]]:
    """Of each healthy training of `fresh`, by name, what its healthy.toml says."""
    return _described(FRESH / "healthy")


def family_programs() -> dict[str, Mapping[str, Any]]:
    """Of each healthy training of `families`, by name, what its healthy.toml says."""
    return _described(FAMILIES / "healthy")


def varied_programs() -> dict[str, Path]:
    """The healthy trainings of `varied`, by name."""
    return _programs(VARIED)


def _described(folder: Path) -> dict[str, Mapping[str, Any]]:
    path = folder / "healthy.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
