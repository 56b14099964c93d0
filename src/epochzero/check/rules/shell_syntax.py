"""A launch script is not valid shell syntax."""

from __future__ import annotations

from epochzero.check.rule import Claims, JobView, Rule
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(view: JobView) -> Claims:
    for problem in problems_of(view.program, "syntax"):
        yield claim_of(
            problem,
            message="The shell cannot parse the script from this line. The lines above it run.",
            consequence=f"bash: {problem.text} (exit status 2)",
        )


RULE = Rule(
    category="syntax_error",
    why="The shell parses a script while it runs it. It finds an unclosed quote or `if` after "
    "all lines above have run, which may include the training.",
    fix="Close the quote, or end the block with fi, done, esac or }.",
    source="POSIX, Shell Command Language, 2.8.1 Consequences of Shell Errors; bash(1), `-n`",
    check=_check,
    examples=r"""
        $ bash run.sh
        ==> run.sh <==
        python train.py
        if true; then
        echo done
          # <-
        \ No newline at end of file
        ==> train.py <==
        ---- ignored if
        -
        -\ No newline at end of file
        +fi
    """,
)
