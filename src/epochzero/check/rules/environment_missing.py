"""A launch script activates an environment that does not exist."""

from epochzero.check.rule import Claims, JobView, Rule
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(view: JobView) -> Claims:
    for problem in problems_of(view.program, "environment"):
        # An environment is created on its platform, and does not travel with the job.
        if not view.target.here and view.target.files.get(problem.text) is not False:
            continue
        yield claim_of(
            problem,
            message=f"The script activates {problem.text}, which does not exist.",
            consequence=f"{problem.text}: No such file or directory; without `set -e` the job continues "
            "with another Python, without its packages",
        )


RULE = Rule(
    category="path_not_found",
    why="A repository usually does not contain the Python environment. The environment may have a "
    "different name on another machine. A script without `set -e` continues with the system "
    "Python and fails at the first import of a missing package.",
    fix="Create the environment before the script activates it, or correct the path.",
    source="Zhang et al., ICSE 2020, section 3.2: differences between the local environment and the "
    "platform; venv in the Python documentation",
    check=_check,
    examples="""
        $ bash run.sh
        ==> run.sh <==
        set -e
        source /venv/bin/activate  # <-
        python train.py
        ==> train.py <==
        ==> target.toml <==
        [files]
        "/venv/bin/activate" = false
        ----
        $ bash run.sh
        ==> run.sh <==
        python -m venv venv
        source venv/bin/activate
        python train.py
        ==> train.py <==
        ----
        $ bash run.sh
        ==> run.sh <==
        source venv/bin/activate
        python train.py
        ==> train.py <==
        ==> venv/bin/activate <==
    """,
)
