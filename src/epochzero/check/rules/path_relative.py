"""A relative path is meant from the script's folder, and the job starts elsewhere."""

from __future__ import annotations

from epochzero.check.paths.report import Told, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _tell(problem: Problem, world: World) -> Told:
    shown = world.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown} from the folder in which the job starts; it is "
        f"beside the script: {problem.detail}.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        "Start the job in the folder of the script, or build the path from "
        "Path(__file__).resolve().parent.",
    )


_ENTER = "import os\n\nos.makedirs('run', exist_ok=True)\nos.chdir('run')\n"
_OPEN = "import json\nwith open('config.json') as file:\n    settings = json.load(file)\n"

RULE = Rule(
    title="A relative path is looked for in the wrong folder",
    category="path_not_found",
    why="A relative path counts from the folder in which the job is started, not from the script. "
    "Launchers and batch systems start jobs elsewhere than an editor does.",
    fix="Build the path from Path(__file__).resolve().parent, or start the job in that folder.",
    source="Zhang et al., ICSE 2020, section 4.2: Path Not Found",
    check=path_check("path-relative", _tell),
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
