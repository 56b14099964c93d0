"""The lab's failing trainings, with what each fails with, as cases.toml says it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

__all__ = ["FOLDER", "Case", "all_cases"]

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """A training that fails.

    Attributes:
        name: of its program.
        kind: deterministic, when it fails at the same update in each run; else stochastic.
        exceptions: names of the exceptions that it may fail with; none when it ends well, with a loss that
            is no number.
        lines: text of the line in which it may fail: of the user's innermost frame.
        nonfinite: whether a loss that is not finite comes first.
        updates: steps of optimizers that were done before it failed; None where that varies.
        needs: modules beside torch.
        held_out: whether nobody looks at its result to build something.
    """

    name: str
    kind: Literal["deterministic", "stochastic"]
    exceptions: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    nonfinite: bool = False
    updates: int | None = None
    needs: tuple[str, ...] = ()
    held_out: bool = False

    @property
    def program(self) -> str:
        """The text of its program."""
        return (FOLDER / "programs" / f"{self.name}.py").read_text(encoding="utf-8")

    @property
    def missing(self) -> list[str]:
        """Modules that it needs and this Python does not have."""
        return [name for name in self.needs if find_spec(name) is None]


def all_cases() -> list[Case]:
    """All of them; every second one of each kind, by name, is held out."""
    told = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    cases = []
    for kind in ("deterministic", "stochastic"):
        names = sorted(name for name, about in told.items() if about["kind"] == kind)
        for number, name in enumerate(names):
            about = told[name]
            cases.append(
                Case(
                    name,
                    kind,
                    tuple(filter(None, (about.get("exception"), *about.get("also", ())))),
                    tuple(filter(None, (about.get("line"), *about.get("also_lines", ())))),
                    about.get("nonfinite", False),
                    about.get("updates"),
                    tuple(about.get("needs", ())),
                    held_out=number % 2 == 1,
                )
            )
    return cases
