"""A path differs in case from the name that exists."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    shown = world.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown}, but the existing name is {problem.detail}.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        f"Write {problem.detail}.",
    )


_READ = "import pandas as pd\nframe = pd.read_csv('Data/train.csv')\n"

RULE = Rule(
    title="A path differs in case from the name on disk",
    category="path_not_found",
    why="macOS and Windows open Train.csv as train.csv; Linux does not. The program works where "
    "it was written and fails where it runs.",
    fix="Write each name exactly as it is on disk.",
    source="Zhang et al., ICSE 2020, section 4.2: differences between the local machine and the "
    "platform",
    check=path_check("path-wrong-case", _describe),
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
