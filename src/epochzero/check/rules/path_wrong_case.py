"""A name differs in case from the one that is there."""

from __future__ import annotations

from epochzero.check.paths.report import Told, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _tell(problem: Problem, world: World) -> Told:
    shown = world.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown}, and what is there is called {problem.detail}.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        f"Write {problem.detail}.",
    )


_READ = "import pandas as pd\nframe = pd.read_csv('Data/train.csv')\n"

RULE = Rule(
    title="A path is written in another case than its name",
    category="path_not_found",
    why="macOS and Windows open Train.csv as train.csv, Linux does not. The program works where it "
    "was written and fails where it runs.",
    fix="Write names as they are.",
    source="Zhang et al., ICSE 2020, section 4.2: differences between the local machine and the "
    "platform",
    check=path_check("path-wrong-case", _tell),
    catches=(
        Case({"train.py": _READ, "data/train.csv": "a\n1\n"}, line=2),
        Case({"train.py": _READ, "Data/Train.csv": "a\n1\n"}, line=2),
        Case(
            {
                "train.py": "from pathlib import Path\ntext = (Path('cfg') / 'Base.json').read_text()\n",
                "cfg/base.json": "{}",
            },
            line=2,
        ),
        Case(
            {"train.py": "import torch\ntorch.load('/models/Best.pt')\n"},
            target='[files]\n"/models/Best.pt" = false\n"/models/best.pt" = true\n',
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": _READ, "Data/train.csv": "a\n1\n"}),
        Case({"train.py": _READ, "Data/train.csv": "a\n1\n", "data/Train.csv": "a\n1\n"}),
        Case({"train.py": _READ, "other/train.csv": "a\n1\n"}),
        Case(
            {"train.py": "import torch\ntorch.load('/models/Best.pt')\n"},
            target='[files]\n"/models/Best.pt" = true\n"/models/best.pt" = true\n',
        ),
    ),
)
