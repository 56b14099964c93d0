"""A folder or file is made that is there already."""

from __future__ import annotations

from epochzero.check.paths.report import Told, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _tell(problem: Problem, world: World) -> Told:
    access, shown = problem.access, world.platform.shown(problem.path)
    allow = f"pass {access.use.ok}=True" if access.use.ok else "use os.makedirs(..., exist_ok=True)"
    file = access.does == "creates"
    return (
        f"{access.function} makes {shown}, which is there already.",
        f"FileExistsError: File exists: '{shown}'",
        f"Open it with mode 'w', or choose another name for {shown}."
        if file
        else f"Let it be there: {allow}.",
    )


RULE = Rule(
    title="A folder is made that is there already, and that is not allowed",
    category="illegal_argument",
    why="The first run makes the folder; the second, or the one after a restart, fails because it "
    "is there.",
    fix="Pass exist_ok=True.",
    source="Python documentation: os.makedirs raises FileExistsError unless exist_ok is true",
    check=path_check("path-exists-refused", _tell),
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
