"""A relative path refers to the script's directory, but the job starts in another one."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    shown = world.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown} relative to the directory in which the job "
        f"starts, but the file is next to the script: {problem.detail}.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        "Start the job in the directory of the script, or build the path from "
        "Path(__file__).resolve().parent.",
    )


_ENTER = "import os\n\nos.makedirs('run', exist_ok=True)\nos.chdir('run')\n"
_OPEN = "import json\nwith open('config.json') as file:\n    settings = json.load(file)\n"

RULE = Rule(
    title="A relative path is resolved in the wrong directory",
    category="path_not_found",
    why="A relative path is resolved in the working directory of the job, not in the directory "
    "of the script. Launchers and batch systems often start jobs in a different directory "
    "than an editor does.",
    fix="Build the path from Path(__file__).resolve().parent, or start the job in the directory "
    "of the script.",
    source="Zhang et al., ICSE 2020, section 4.2: Path Not Found",
    check=path_check("path-relative", _describe),
    catches=(
        Case(
            {"train.py": "", "src/train.py": _OPEN, "src/config.json": "{}"},
            command=("python", "src/train.py"),
            path="src/train.py",
            line=2,
        ),
        Case({"train.py": f"{_ENTER}{_OPEN}", "config.json": "{}"}, line=6),
        Case(
            {
                "train.py": f"{_ENTER}import pandas as pd\nframe = pd.read_csv('data/a.csv')\n",
                "data/a.csv": "a\n1\n",
            },
            line=6,
        ),
        Case(
            {
                "train.py": "import os\nfrom pathlib import Path\n\nos.chdir(Path('out'))\n"
                "words = Path('words.txt').read_text()\n",
                "out/old.txt": "x",
                "words.txt": "x",
            },
            line=5,
        ),
        Case(
            {
                "train.py": f"{_ENTER}from torchvision import datasets\n"
                "data = datasets.ImageFolder('images')\n",
                "images/cat/1.png": "x",
            },
            line=6,
        ),
    ),
    leaves=(
        Case(
            {"train.py": "", "src/train.py": _OPEN, "config.json": "{}"},
            command=("python", "src/train.py"),
        ),
        Case({"train.py": _OPEN, "config.json": "{}"}),
        Case(
            {
                "train.py": "from pathlib import Path\n"
                "text = (Path(__file__).parent / 'config.json').read_text()\n",
                "config.json": "{}",
            }
        ),
        Case({"train.py": "import os\nos.path.exists('config.json')\n"}),
        Case({"train.py": "open('/etc/hostname').read()\n"}),
    ),
)
