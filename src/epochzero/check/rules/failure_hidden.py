"""A pipeline that hides the failure of the job in a script that is to end at failures."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "pipe"):
        yield claim_of(
            one,
            message=f"The outcome of the pipeline is that of {one.text}: `set -e` does not see when "
            "Python fails.",
            consequence="No error: the script goes on, and ends as if the job had succeeded.",
            fix="Write `set -o pipefail` before it.",
        )


RULE = Rule(
    title="A pipeline hides that the job has failed",
    category="internal_error",
    why="`python train.py | tee log` succeeds when tee does. The evaluation is then run on what an "
    "earlier run has left, and the batch system reports success.",
    fix="Write `set -o pipefail` before it.",
    source="bash(1), Pipelines: the exit status of a pipeline is that of the last command",
    check=_check,
    catches=(
        Case(
            {"run.sh": "set -e\npython train.py 2>&1 | tee log\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case(
            {"run.sh": "set -eo pipefail\npython train.py 2>&1 | tee log\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
        Case(
            {"run.sh": "set -e\necho 1 | python train.py\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
        Case(
            {"run.sh": "python train.py 2>&1 | tee log\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
    ),
)
