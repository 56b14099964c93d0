"""A launch script is not valid shell syntax."""

from epochzero.check.rule import Rule
from epochzero.check.rules.scripts import script_check

RULE = Rule(
    category="syntax_error",
    why="The shell parses a script line by line while the script runs. The shell detects an "
    "unclosed quote or `if` only after all earlier lines have run. These lines may include the "
    "training.",
    fix="Close the quote, or end the block with fi, done, esac or }.",
    source="POSIX, Shell Command Language, 2.8.1 Consequences of Shell Errors; bash(1), `-n`",
    check=script_check(
        "syntax",
        message="The shell cannot parse the script from this line. The lines above it run.",
        consequence="bash: {text} (exit status 2)",
    ),
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
