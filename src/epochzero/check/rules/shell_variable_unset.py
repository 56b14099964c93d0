"""A variable of a launch script that nothing sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from epochzero.check.findings import Finding
from epochzero.check.program.model import Program
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.scripts import finding_of, problems_of
from epochzero.check.target.model import Target

__all__ = ["RULE"]


def _check(program: Program, target: Target) -> Iterable[Finding]:
    for one in problems_of(program, "unset", "root"):
        if one.text in (target.environment or {}):
            continue
        fails = one.kind == "unset"
        # Elsewhere another shell submits the job, which may set it.
        sure = one.certain and fails and target.here
        yield finding_of(
            replace(one, certain=sure),
            RULE.id,
            RULE.category,
            message=f"{one.text} is used, and neither the script nor the environment sets it"
            + (", under `set -u`." if fails else f": ${one.text}/ is then the root folder."),
            consequence=f"{one.text}: unbound variable (exit status 1)"
            if fails
            else "No such file or directory, or Permission denied, for a path that begins with /",
            fix=f"Set {one.text} in the script, or give a default: ${{{one.text}:-default}}.",
        )


RULE = Rule(
    id="shell-variable-unset",
    title="A launch script uses a variable that nothing sets",
    category="undefined_variable",
    why="Variables such as $DATA and $OUT are set in a person's own shell, and not on the platform. "
    "Where they are not set, $OUT/model.pt is a file of the root folder.",
    fix="Set the variable in the script, or give a default with ${NAME:-default}.",
    source="POSIX, Shell Command Language, 2.5.3 Shell Variables and 2.14 set -u",
    check=_check,
    catches=(
        Case(
            {"run.sh": "set -u\npython train.py --name $RUN\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
        Case(
            {
                "run.sh": 'python train.py\npython train.py --out "${OUT}/model.pt"\n',
                "train.py": "",
            },
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case(
            {"run.sh": "set -u\nOUT=out\npython train.py $OUT/a ${B:-b} $1\n", "train.py": ""},
            command=("bash", "run.sh", "a"),
        ),
        Case(
            {"run.sh": "python train.py --out $OUT/model.pt\n", "train.py": ""},
            command=("bash", "run.sh"),
            environment={"OUT": "/scratch"},
        ),
        Case(
            {"run.sh": "source /etc/site.sh\npython train.py $OUT/model.pt\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
    ),
)
