"""A command of a launch script ends before its last option."""

from epochzero.check.rule import Case, Rule
from epochzero.check.rules.scripts import script_check

RULE = Rule(
    category="illegal_argument",
    why="A multi-line command ends early at a missing backslash, a backslash before a blank, or a "
    "comment. The shell still runs the incomplete command. The program uses default values for "
    "all later options.",
    fix="End the previous line with a backslash. Remove blanks after the backslash. Remove "
    "comments and empty lines from the command.",
    source="POSIX, Shell Command Language, 2.2.1 Escape Character (Backslash)",
    check=script_check(
        "option",
        message="{text} is in the position of a command: its command ends on an earlier "
        "line, and runs without this option and those that follow.",
        consequence="{text}: command not found (exit status 127)",
    ),
    examples=r"""
            $ bash run.sh
            ==> run.sh <==
            python train.py \
                # --lr 1 \
                --epochs 3  # <-
            ==> train.py <==
            ---- ignored if
            -    # --lr 1 \
        """,
    further_cases=(
        Case(
            {"run.sh": "python train.py \\ \n    --epochs 3\n", "train.py": ""},
            command=("bash", "run.sh"),
            line=2,
            path="run.sh",
        ),
    ),
)
