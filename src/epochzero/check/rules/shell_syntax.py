"""A launch script that the shell cannot read."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "syntax"):
        yield claim_of(
            one,
            message="The shell cannot read the script from here on. What stands before is run.",
            consequence=f"bash: {one.text} (exit status 2)",
            fix="Close the quote, or end what was begun with fi, done, esac or }.",
        )


RULE = Rule(
    title="A launch script is no valid script",
    category="syntax_error",
    why="The shell reads a script while it runs it. A quote or an `if` that is not closed is found "
    "when all before it has been run, which may be the training.",
    fix="Close the quote, or end what was begun with fi, done, esac or }.",
    source="POSIX, Shell Command Language, 2.8.1 Consequences of Shell Errors; bash(1), `-n`",
    check=_check,
    catches=(
        Case(
            {"run.sh": "python train.py\nif true; then\necho done\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=4,
        ),
    ),
    leaves=(
        Case(
            {"run.sh": "python train.py\nif true; then\necho done\nfi\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
    ),
)
