"""A value that its option cannot convert, or converts to something else than is meant."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.command_line import argument_claims

_SCRIPT = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--amp", type=bool, default=True)
args = parser.parse_args()
"""
_GIVEN = _SCRIPT.replace("import argparse", "import argparse, sys").replace(
    "parse_args()", "parse_args(sys.argv[1:])"
)
_RUN = 'python train.py --out "$SLURM_JOB_ID" --lr 1,5\n'


def _check(program: Program, target: Target) -> Claims:
    return argument_claims(
        program,
        {"type"},
        "Give {option} a value of its type instead of {value}; for truth values use an action such as store_true.",
    )


RULE = Rule(
    title="A value is not of the type that its option takes",
    category="illegal_argument",
    why="A number with a unit, a float for an int, an empty variable: the parser ends the job when it starts. With type=bool every text is true, also False, and the job goes on with the wrong setting.",
    fix="Give a value of the option's type; define truth values with action='store_true' or BooleanOptionalAction.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=_check,
    catches=(
        Case({"train.py": _SCRIPT}, ("--lr", "1e-3x"), path="<command>"),
        Case({"train.py": _SCRIPT}, ("--amp", "False"), line=5),
        Case(
            {
                "run.sh": _RUN,
                "train.py": _GIVEN.replace("--amp", "--out").replace("type=bool, ", ""),
            },
            command=("sbatch", "run.sh"),
            path="run.sh",
            line=1,
        ),
    ),
    leaves=(
        Case({"train.py": _SCRIPT}, ("--lr", "1e-3", "--amp", "True")),
        Case({"train.py": _SCRIPT}, ("--amp", "1")),
    ),
)
