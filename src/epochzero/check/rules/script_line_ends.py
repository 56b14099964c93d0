"""A launch script has Windows line endings."""

from epochzero.check.rule import Case, Rule
from epochzero.check.rules.scripts import script_check

RULE = Rule(
    category="syntax_error",
    why="A script that was written or checked out on Windows often has a carriage return at the "
    "end of each line. A Linux shell reads this character as part of the last word.",
    fix="Convert the script to Unix line endings.",
    source="gitattributes(5), eol; Zhang et al., ICSE 2020, section 3.2: differences between the "
    "local environment and the platform",
    check=script_check(
        "line ends",
        message="{text} has Windows line endings: the last word of each line ends with a "
        "carriage return.",
        consequence="$'\\r': command not found, or No such file or directory for a name that ends "
        "with it",
        fix="Convert it to Unix line endings: dos2unix {text}, or eol=lf in .gitattributes.",
    ),
    examples=r"""
            $ bash run.sh
            ==> run.sh <==
            python train.py
            printf 'a\r\n'
            ==> train.py <==
        """,
    further_cases=(
        Case(
            {"run.sh": "export A=1\r\npython train.py\r\n", "train.py": ""},
            command=("bash", "run.sh"),
            line=2,
            path="run.sh",
        ),
    ),
)
