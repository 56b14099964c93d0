"""A program creates a directory or file that already exists."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


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
    catches=(
        Case({"train.py": "import os\nos.makedirs('out')\n", "out/old.txt": "x"}, line=2),
        Case({"train.py": "import os\nos.mkdir('out')\nos.mkdir('out')\n"}, line=3),
        Case(
            {"train.py": "from pathlib import Path\nPath('out').mkdir()\n", "out/old.txt": "x"},
            line=2,
        ),
        Case(
            {"train.py": "file = open('results.csv', 'x')\n", "results.csv": "a\n"},
            line=1,
        ),
        Case(
            {
                "train.py": "import shutil\nshutil.copytree('data', 'work')\n",
                "data/a.txt": "x",
                "work/a.txt": "x",
            },
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": "import os\nos.makedirs('out', exist_ok=True)\n", "out/old.txt": "x"}),
        Case({"train.py": "import os\nos.makedirs('out')\n"}),
        Case(
            {
                "train.py": "import os\nif not os.path.isdir('out'):\n    os.makedirs('out')\n",
                "out/old.txt": "x",
            }
        ),
        Case(
            {
                "train.py": "import os\ntry:\n    os.mkdir('out')\nexcept FileExistsError:\n    pass\n",
                "out/old.txt": "x",
            }
        ),
        Case(
            {
                "train.py": "import os\nimport shutil\nif os.path.exists('out'):\n"
                "    shutil.rmtree('out')\nos.makedirs('out')\n",
                "out/old.txt": "x",
            }
        ),
        Case(
            {
                "train.py": "import shutil\nshutil.rmtree('out', ignore_errors=True)\n"
                "import os\nos.makedirs('out')\n",
                "out/old.txt": "x",
            }
        ),
    ),
)
