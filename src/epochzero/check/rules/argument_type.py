"""A value does not have the type of its option."""

from epochzero.check.rule import Rule
from epochzero.check.rules.command_line import argument_check

RULE = Rule(
    category="illegal_argument",
    why="Common causes are a number with a unit, a float instead of an int, and an empty "
    "variable. The parser terminates the job at startup. With type=bool, every non-empty text is "
    "true, even the text False. The job then continues with the wrong setting.",
    fix="Pass a value of the option's type. Define Boolean options with action='store_true' or "
    "BooleanOptionalAction.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=argument_check(
        "type",
        fix="Set {option} to a value of its type instead of {value}. For truth values use an "
        "action such as store_true.",
    ),
    examples="""
        $ python train.py --lr 1e-3x
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)  # <-
        parser.add_argument("--amp", type=bool, default=True)
        args = parser.parse_args()
        ---- ignored if
        -$ python train.py --lr 1e-3x
        +$ python train.py --lr 1e-3 --amp True
        ----
        $ python train.py --amp False
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        parser.add_argument("--amp", type=bool, default=True)  # <-
        args = parser.parse_args()
        ----
        $ sbatch run.sh
        ==> run.sh <==
        python train.py --out "$SLURM_JOB_ID" --lr 1,5  # <-
        ==> train.py <==
        import argparse, sys

        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        parser.add_argument("--out", default=True)
        args = parser.parse_args(sys.argv[1:])
    """,
)
