"""A script that is started by its name alone and cannot be."""

from __future__ import annotations

from pathlib import Path

from epochzero.check.job.model import ScriptProblem
from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of
from epochzero.file_access import readable


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "mode"):
        yield claim_of(
            one,
            message=f"{one.text} is run by its name, and its mode says that nobody may.",
            consequence=f"{one.text}: Permission denied (exit status 126)",
            fix=f"chmod +x {one.text}, and commit that; or put bash or python in front of it.",
        )
    for one in problems_of(program, "first line"):
        yield claim_of(
            one,
            category="syntax_error",
            message=f"{one.text} is run by its name and has no first line that says by what: the "
            "shell reads its Python as commands.",
            consequence="import: command not found, or a syntax error near an unexpected token",
            fix="Begin it with `#!/usr/bin/env python3`, or put python in front of it.",
        )
    for one in problems_of(program, "interpreter"):
        if _is_missing(one, target):
            yield claim_of(
                one,
                category="library_not_found",
                message=f"The first line of the script names {one.text}, which the target has not.",
                consequence=f"bad interpreter: {one.text}: No such file or directory",
                fix="Name one that is there: `#!/usr/bin/env python3` finds it on the path.",
            )


def _is_missing(one: ScriptProblem, target: Target) -> bool:
    if one.text.startswith("/"):
        return target.here and readable(one.text) and not Path(one.text).exists()
    return target.programs is not None and one.text not in target.programs


RULE = Rule(
    title="A script is run by its name and cannot be",
    category="permission_denied",
    why="The mode of a file is lost when it is copied, downloaded or made anew, and the first line "
    "names an interpreter of the machine on which it was written.",
    fix="chmod +x, and a first line such as `#!/usr/bin/env python3`; or name the program that runs it.",
    source="Zhang et al., ICSE 2020, Table 1: Permission Denied; execve(2)",
    check=_check,
    catches=(
        Case(
            {"run.sh": "set -e\n./step.sh\n", "step.sh": "#!/bin/sh\npython train.py\n",
             "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case(
            {"run.sh": "set -e\nchmod +x step.sh\n./step.sh\n",
             "step.sh": "#!/bin/sh\npython train.py\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
        Case(
            {"run.sh": "bash ./step.sh\n", "step.sh": "python train.py\n", "train.py": ""},
            command=("bash", "run.sh"),
        ),
    ),
)  # fmt: skip
