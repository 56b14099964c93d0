"""Mutants of a training program: each has one fault, a leaf of the taxonomy of real faults.

mutant = mutate(Path("train.py").read_text(), "missing_api_call", seed=0)
mutant.text, mutant.line, mutant.old, mutant.new

`program` is what is known of a program; `operators` are the changes, a file for each part of the taxonomy.
"""

from __future__ import annotations

import ast
import random
from dataclasses import asdict, dataclass
from typing import Any

from epochzero import taxonomy
from epochzero.errors import InputError, suggestion
from epochzero_models.mutate.operators import operators
from epochzero_models.mutate.program import Edit, TrainingProgram, parsed

__all__ = ["Mutant", "NoPlaceError", "injectable", "mutate"]


class NoPlaceError(InputError):
    """The program has no place where the fault could sit."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one fault in it.

    Attributes:
        leaf: the name of the fault, `epochzero.taxonomy.leaves`.
        change: a sentence that says what the operator does.
        line: where the program differs, from 1.
        old: the lines that stood there; empty where lines were added.
        new: the lines that stand there; empty where lines were taken away.
        places: in how many places of the program the fault could have been made.
        text: the program with the fault.
    """

    leaf: str
    change: str
    line: int
    old: str
    new: str
    places: int
    text: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without the text of the program."""
        record = {"schema": "epochzero.mutant/1", **asdict(self)}
        del record["text"]
        return record


def injectable() -> tuple[str, ...]:
    """The leaves that can be brought into a program, in the order of the taxonomy."""
    return tuple(name for name in taxonomy.leaves() if name in operators())


def mutate(text: str, leaf: str, *, seed: int = 0, name: str = "the program") -> Mutant:
    """A training program for PyTorch with one fault in it; nothing is run.

    Args:
        text: the program.
        leaf: the fault, a name of `epochzero.taxonomy.leaves`.
        seed: chooses one of the places where the fault can be made.
        name: of the program, for messages.

    Raises:
        InputError: the program does not parse, there is no such leaf, or no program can be given it.
        NoPlaceError: this program cannot be given it.
    """
    operator = operators().get(leaf)
    if operator is None:
        raise InputError(_why_not(leaf))
    program = TrainingProgram(text, name)
    found = {
        edit: changed
        for edit in operator.places(program)
        if (changed := _changed(program, edit)) is not None
    }
    if not found:
        raise NoPlaceError(
            f"{leaf} is not applicable to {name}. It would change: {operator.change}"
        )
    edit = random.Random(f"{seed}:{leaf}").choice(list(found))
    line, old, new = _difference(text.split("\n"), found[edit].split("\n"))
    return Mutant(leaf, operator.change, line, old, new, len(found), found[edit])


def _changed(program: TrainingProgram, edit: Edit) -> str | None:
    """The program after the edit, where it parses and means something else."""
    text = program.text[: edit.start] + edit.new + program.text[edit.end :]
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError):
        return None
    return text if ast.dump(tree) != ast.dump(program.tree) else None


def _difference(old: list[str], new: list[str]) -> tuple[int, str, str]:
    """The first line that differs, and the lines in which two texts differ in one place."""
    shorter = min(len(old), len(new))
    first = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    same = next(n for n in range(shorter - first + 1) if n == shorter - first or old[-n - 1] != new[-n - 1])  # fmt: skip
    before, after = ("\n".join(lines[first : len(lines) - same]) for lines in (old, new))
    return first + 1, before, after


def _why_not(leaf: str) -> str:
    known = taxonomy.leaves().get(leaf)
    if known is not None:
        return f"{leaf} cannot be injected: {known.not_injected}"
    hint = suggestion(leaf, taxonomy.leaves(), "`epochzero explain` lists them")
    return f"no leaf of the taxonomy is called {leaf!r}; {hint}"
