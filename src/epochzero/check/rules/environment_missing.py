"""A launch script activates a Python environment that is not there."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "environment"):
        # An environment is made on its platform, and does not lie with the job.
        if not target.here and target.files.get(one.text) is not False:
            continue
        yield claim_of(
            one,
            message=f"The script activates {one.text}, which is not there.",
            consequence=f"{one.text}: No such file or directory; without `set -e` the job goes on with "
            "another Python, and without its packages",
            fix="Make the environment before, or correct its folder.",
        )


RULE = Rule(
    title="A launch script activates an environment that is not there",
    category="path_not_found",
    why="Environments are not part of a repository, and have other names on other machines. A script "
    "without `set -e` goes on with the Python of the system, and fails at the first import.",
    fix="Make the environment before, or correct its folder.",
    source="Zhang et al., ICSE 2020, section 3.2: differences between the local environment and the "
    "platform; venv in the Python documentation",
    check=_check,
    catches=(
        Case(
            {"run.sh": "set -e\nsource /venv/bin/activate\npython train.py\n", "train.py": ""},
            command=("bash", "run.sh"),
            target='[files]\n"/venv/bin/activate" = false\n',
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case(
            {
                "run.sh": "python -m venv venv\nsource venv/bin/activate\npython train.py\n",
                "train.py": "",
            },
            command=("bash", "run.sh"),
        ),
        Case(
            {
                "run.sh": "source venv/bin/activate\npython train.py\n",
                "train.py": "",
                "venv/bin/activate": "",
            },
            command=("bash", "run.sh"),
        ),
    ),
)
