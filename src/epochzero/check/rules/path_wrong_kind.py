"""The program opens a directory as a file, or uses a file as a directory."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


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


_LISTS = "import os\nnames = os.listdir('data')\n"
_SAVES = "import torch\ntorch.save({}, 'best')\n"
_MAKES = "import os\nos.makedirs('runs', exist_ok=True)\n"

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
    catches=(
        Case({"train.py": "text = open('data').read()\n", "data/a.txt": "x"}, line=1),
        Case({"train.py": _LISTS, "data": "x"}, line=2),
        Case({"train.py": _SAVES, "best/notes.txt": "x"}, line=2),
        Case({"train.py": _MAKES, "runs": "x"}, line=2),
    ),
    leaves=(
        Case({"train.py": _LISTS, "data/a.txt": "x"}),
        Case({"train.py": _SAVES, "best": "x"}),
        Case({"train.py": _MAKES, "runs/a.txt": "x"}),
        Case(
            {"train.py": f"import os\nos.remove('data')\nos.mkdir('data')\n{_LISTS}", "data": "x"}
        ),
        Case({"train.py": "import numpy as np\nnp.save('out', [1])\n", "out/a.txt": "x"}),
        Case(
            {
                "train.py": "try:\n    open('data').read()\nexcept IsADirectoryError:\n    pass\n",
                "data/a.txt": "x",
            }
        ),
    ),
)
