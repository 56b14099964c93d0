"""The program opens a directory as a file, or uses a file as a directory."""

from __future__ import annotations

from epochzero.check.paths.world import Problem, World
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: Problem, world: World) -> Texts:
    access, shown = problem.access, world.platform.shown(problem.path)
    if access.wants == "file":
        does = "reads" if access.does == "reads" else "writes"
        error = f"IsADirectoryError: [Errno 21] Is a directory: '{shown}'"
        if access.call.name == "torch.save":
            error = f"RuntimeError: File {shown} cannot be opened."
        return (
            f"{access.function} {does} {shown}, which is a directory.",
            error,
            f"Pass the path of a file in {shown}: os.path.join('{shown}', name).",
        )
    if access.does == "makes":
        return (
            f"{access.function} creates the directory {shown}, but a file of that name exists.",
            f"FileExistsError: [Errno 17] File exists: '{shown}'",
            f"Remove the file {shown}, or choose another name for the directory.",
        )
    return (
        f"{access.function} reads the directory {shown}, which is a file.",
        f"NotADirectoryError: [Errno 20] Not a directory: '{shown}'",
        f"Pass the path of a directory, or read {shown} as a file.",
    )


RULE = Rule(
    title="The program opens a directory as a file, or uses a file as a directory",
    category="path_not_found",
    why="An argument names the directory of a checkpoint or data set where the code opens one of "
    "its files, or the reverse. The path exists, so an existence check does not find the "
    "mistake.",
    fix="Pass the file in the directory, or the directory of the file.",
    source="Zhang et al., ICSE 2020, section 3.3: Path Not Found; Python documentation, "
    "IsADirectoryError, NotADirectoryError",
    check=path_check("path-wrong-kind", _describe),
    examples="""
        text = open('data').read()  # <-
        ==> data/a.txt <==
        x
        ----
        import os
        names = os.listdir('data')  # <-
        ==> data <==
        x
        ---- ignored if
        -==> data <==
        +==> data/a.txt <==
        ----
        import torch
        torch.save({}, 'best')  # <-
        ==> best/notes.txt <==
        x
        ---- ignored if
        -==> best/notes.txt <==
        +==> best <==
        ----
        import os
        os.makedirs('runs', exist_ok=True)  # <-
        ==> runs <==
        x
        ---- ignored if
        -==> runs <==
        +==> runs/a.txt <==
        ----
        import os
        os.remove('data')
        os.mkdir('data')
        import os
        names = os.listdir('data')
        ==> data <==
        x
        ----
        import numpy as np
        np.save('out', [1])
        ==> out/a.txt <==
        x
        ----
        try:
            open('data').read()
        except IsADirectoryError:
            pass
        ==> data/a.txt <==
        x
    """,
)
