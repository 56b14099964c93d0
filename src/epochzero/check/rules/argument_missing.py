"""The command line lacks an argument that the program's parser requires."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.command_line import argument_claims

_SCRIPT = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--lr", required=True)
args = parser.parse_args()
"""


def _check(program: Program, target: Target) -> Claims:
    return argument_claims(program, {"missing"}, "Pass {option}.")


RULE = Rule(
    title="A required argument is missing",
    category="illegal_argument",
    why="A required option or its value is missing, often because a variable of the launch "
    "script is empty. The parser ends the job at startup.",
    fix="Pass the argument, or define a default in the parser.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=_check,
    catches=(
        Case({"train.py": _SCRIPT}, ("shards",), path="<command>"),
        Case({"train.py": _SCRIPT}, ("--lr", "1"), path="<command>"),
        Case({"train.py": _SCRIPT}, ("shards", "--lr"), path="<command>"),
        Case(
            {"run.sh": "set -e\npython train.py --lr 1\n", "train.py": _SCRIPT},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": _SCRIPT}, ("shards", "--lr", "1")),
        Case({"train.py": _SCRIPT}, ("--lr=1", "--", "-x")),
    ),
)
