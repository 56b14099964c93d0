"""A line of a launch script that begins with an option: its command has ended before."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "option"):
        yield claim_of(
            one,
            message=f"{one.text} stands where a command should: the command that it belongs to has "
            "ended before, and is run without it and what follows.",
            consequence=f"{one.text}: command not found (exit status 127)",
            fix="End the line before with a backslash, without blanks after it, and take comments and "
            "empty lines out of the command.",
        )


RULE = Rule(
    title="A command of a launch script ends before its last option",
    category="illegal_argument",
    why="A backslash with a blank behind it, a backslash that is missing, and a comment within a "
    "command that spans lines end it there. It is run all the same, with default values for all that "
    "follows.",
    fix="End each line but the last with a backslash, without blanks after it.",
    source="POSIX, Shell Command Language, 2.2.1 Escape Character (Backslash)",
    check=_check,
    catches=(
        Case(
            {"run.sh": "python train.py \\ \n    --epochs 3\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
        Case(
            {"run.sh": "python train.py \\\n    # --lr 1 \\\n    --epochs 3\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=3,
        ),
    ),
    leaves=(
        Case(
            {"run.sh": "python train.py \\\n    --epochs 3\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
    ),
)
