"""A launch script with the line ends of Windows."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "line ends"):
        yield claim_of(
            one,
            message=f"{one.text} has the line ends of Windows: the last word of each line ends with a "
            "carriage return.",
            consequence="$'\\r': command not found, or No such file or directory for a name that ends "
            "with it",
            fix=f"Write it with the line ends of Unix: dos2unix {one.text}, or eol=lf in "
            ".gitattributes.",
        )


RULE = Rule(
    title="A launch script has the line ends of Windows",
    category="syntax_error",
    why="A script that was written or checked out on Windows ends its lines with a carriage return, "
    "which the shell of the platform takes for a part of the last word.",
    fix="Write it with the line ends of Unix.",
    source="gitattributes(5), eol; Zhang et al., ICSE 2020, section 3.2: differences between the "
    "local environment and the platform",
    check=_check,
    catches=(
        Case(
            {"run.sh": "export A=1\r\npython train.py\r\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case(
            {"run.sh": "python train.py\nprintf 'a\\r\\n'\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
    ),
)
