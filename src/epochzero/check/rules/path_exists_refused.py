"""A program creates a directory or file that already exists."""

from __future__ import annotations

from epochzero.check.paths.world import Problem, World
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: Problem, world: World) -> Texts:
    access, shown = problem.access, world.platform.shown(problem.path)
    allow = f"pass {access.use.ok}=True" if access.use.ok else "use os.makedirs(..., exist_ok=True)"
    file = access.does == "creates"
    return (
        f"{access.function} creates {shown}, which already exists.",
        f"FileExistsError: File exists: '{shown}'",
        f"Open it with mode 'w', or choose another name for {shown}."
        if file
        else f"Allow an existing directory: {allow}.",
    )


RULE = Rule(
    title="The program creates a directory that already exists, and the call does not allow it",
    category="illegal_argument",
    why="The first run creates the directory. The second run, or a restart, fails because the "
    "directory exists.",
    fix="Pass exist_ok=True.",
    source="Python documentation: os.makedirs raises FileExistsError unless exist_ok is true",
    check=path_check("path-exists-refused", _describe),
    examples="""
        import os
        os.makedirs('out')  # <-
        ==> out/old.txt <==
        x
        ---- ignored if
        -os.makedirs('out')
        +os.makedirs('out', exist_ok=True)
        ---- ignored if
        +import shutil
        +shutil.rmtree('out', ignore_errors=True)
         import os
        ----
        import os
        os.mkdir('out')
        os.mkdir('out')  # <-
        ----
        from pathlib import Path
        Path('out').mkdir()  # <-
        ==> out/old.txt <==
        x
        ----
        file = open('results.csv', 'x')  # <-
        ==> results.csv <==
        a
        ----
        import shutil
        shutil.copytree('data', 'work')  # <-
        ==> data/a.txt <==
        x
        ==> work/a.txt <==
        x
        ----
        import os
        os.makedirs('out')
        ----
        import os
        if not os.path.isdir('out'):
            os.makedirs('out')
        ==> out/old.txt <==
        x
        ----
        import os
        try:
            os.mkdir('out')
        except FileExistsError:
            pass
        ==> out/old.txt <==
        x
        ----
        import os
        import shutil
        if os.path.exists('out'):
            shutil.rmtree('out')
        os.makedirs('out')
        ==> out/old.txt <==
        x
    """,
)
