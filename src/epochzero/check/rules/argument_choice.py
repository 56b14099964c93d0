"""A value is not one of the choices of its option."""

from epochzero.check.rule import Rule
from epochzero.check.rules.command_line import argument_check

RULE = Rule(
    category="illegal_argument",
    why="Launch scripts and programs often spell the names of models, optimizers and modes "
    "differently. A new version of a program can also remove a choice. The parser terminates the "
    "job at startup.",
    fix="Use one of the choices, or add the value to the choices.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=argument_check("choice", fix="Set {option} to one of its choices."),
    examples="""
        $ python train.py --opt adm
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--opt", choices=["sgd", "adam"])  # <-
        parser.add_argument("--n", type=int, choices=range(3))
        args = parser.parse_args()
        ---- ignored if
        -$ python train.py --opt adm
        +$ python train.py --opt adam --n 2
        ----
        $ python train.py --n 3
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--opt", choices=["sgd", "adam"])
        parser.add_argument("--n", type=int, choices=range(3))  # <-
        args = parser.parse_args()
    """,
)
