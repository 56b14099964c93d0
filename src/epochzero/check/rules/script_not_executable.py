"""A script is run by its path but is not executable."""

from pathlib import Path

from epochzero.check.launch.model import ScriptProblem
from epochzero.check.rule import Claims, JobView, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of
from epochzero.file_access import readable


def _check(view: JobView) -> Claims:
    for problem in problems_of(view.program, "mode"):
        yield claim_of(
            problem,
            message=f"{problem.text} is run by its path, but its mode does not allow execution.",
            consequence=f"{problem.text}: Permission denied (exit status 126)",
            fix=f"Run chmod +x {problem.text} and commit the change, or put bash or python in "
            "front of it.",
        )
    for problem in problems_of(view.program, "first line"):
        yield claim_of(
            problem,
            category="syntax_error",
            message=f"{problem.text} is run by its path but has no shebang line: the shell reads its "
            "Python code as commands.",
            consequence="import: command not found, or a syntax error near an unexpected token",
            fix="Add the first line `#!/usr/bin/env python3`, or put python in front of it.",
        )
    for problem in problems_of(view.program, "interpreter"):
        if _is_missing(problem, view.target):
            yield claim_of(
                problem,
                category="library_not_found",
                message=f"The shebang line of the script names {problem.text}, which the target does "
                "not have.",
                consequence=f"bad interpreter: {problem.text}: No such file or directory",
                fix="Name an existing interpreter: `#!/usr/bin/env python3` finds it on the PATH.",
            )


def _is_missing(problem: ScriptProblem, target: Target) -> bool:
    if problem.text.startswith("/"):
        return target.here and readable(problem.text) and not Path(problem.text).exists()
    return target.programs is not None and problem.text not in target.programs


RULE = Rule(
    category="permission_denied",
    why="Copying, downloading or regenerating a file can remove its execute permission. The "
    "shebang line may name an interpreter that exists only on the author's machine.",
    fix="Run chmod +x on the script and add a first line such as `#!/usr/bin/env python3`. "
    "Alternatively, name the interpreter in the command.",
    source="Zhang et al., ICSE 2020, Table 1: Permission Denied; execve(2)",
    check=_check,
    examples="""
        $ bash run.sh
        ==> run.sh <==
        set -e
        ./step.sh  # <-
        ==> step.sh <==
        #!/bin/sh
        python train.py
        ==> train.py <==
        ---- ignored if
         set -e
        +chmod +x step.sh
        ----
        $ bash run.sh
        ==> run.sh <==
        bash ./step.sh
        ==> step.sh <==
        python train.py
        ==> train.py <==
    """,
)
