"""A required argument is missing."""

from epochzero.check.rule import Rule
from epochzero.check.rules.command_line import argument_check

RULE = Rule(
    category="illegal_argument",
    why="A required option or its value is missing, often because a variable in the launch script "
    "is empty. The parser terminates the job at startup.",
    fix="Pass the argument, or define a default in the parser.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=argument_check("missing", fix="Pass {option}."),
    examples="""
        $ python train.py shards
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("data")
        parser.add_argument("--lr", required=True)  # <-
        args = parser.parse_args()
        ---- ignored if
        -$ python train.py shards
        +$ python train.py shards --lr 1
        ---- caught if
        -$ python train.py shards
        +$ bash run.sh
        +==> run.sh <==
        +set -e
        +python train.py --lr 1  # <-
        +==> train.py <==
        @@
        -parser.add_argument("--lr", required=True)  # <-
        +parser.add_argument("--lr", required=True)
    """,
)
