"""A pipeline hides the failure of the job."""

from epochzero.check.rule import Rule
from epochzero.check.rules.scripts import script_check

RULE = Rule(
    category="internal_error",
    why="The pipeline `python train.py | tee log` succeeds if tee succeeds, even if Python fails. "
    "The script may then evaluate the result of an earlier run, and the batch system reports "
    "success.",
    fix="Add `set -o pipefail` before the pipeline.",
    source="bash(1), Pipelines: the exit status of a pipeline is that of the last command",
    check=script_check(
        "pipe",
        message="The exit status of the pipeline is that of {text}: `set -e` does not "
        "notice a failure of Python.",
        consequence="No error: the script continues, and ends as if the job had succeeded.",
    ),
    examples="""
        $ bash run.sh
        ==> run.sh <==
        set -e
        python train.py 2>&1 | tee log  # <-
        ==> train.py <==
        ---- ignored if
        -set -e
        +set -eo pipefail
        ---- ignored if
        -python train.py 2>&1 | tee log
        +echo 1 | python train.py
        ---- ignored if
        -set -e
    """,
)
