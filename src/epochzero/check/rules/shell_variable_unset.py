"""A launch script uses a variable that nothing sets."""

from __future__ import annotations

from dataclasses import replace

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for problem in problems_of(program, "unset", "root"):
        if problem.text in (target.environment or {}):
            continue
        fails = problem.kind == "unset"
        # On other systems another shell submits the job, which may set it.
        sure = problem.certain and fails and target.here
        yield claim_of(
            replace(problem, certain=sure),
            message=f"{problem.text} is used, but neither the script nor the environment sets it"
            + (", under `set -u`." if fails else f": ${problem.text}/ is then the root directory."),
            consequence=f"{problem.text}: unbound variable (exit status 1)"
            if fails
            else "No such file or directory, or Permission denied, for a path that begins with /",
            fix=f"Set {problem.text} in the script, or use a default: "
            "${{problem.text}:-default}.",
        )


RULE = Rule(
    title="A launch script uses a variable that nothing sets",
    category="undefined_variable",
    why="Variables such as $DATA and $OUT are set in a user's own shell, but not on the "
    "platform. If they are not set, $OUT/model.pt is a file in the root directory.",
    fix="Set the variable in the script, or use a default with ${NAME:-default}.",
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
