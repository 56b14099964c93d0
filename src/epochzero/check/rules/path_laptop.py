"""A path belongs to the machine on which the program was written."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    written = problem.access.text.known or f"{problem.access.text.beginning}..."
    target = world.platform.target.name or "the target"
    return (
        f"{problem.access.function} uses {written}: {problem.detail}, which does not exist on "
        f"{target}.",
        f"FileNotFoundError: No such file or directory: '{written}'",
        "Take the path from an argument or an environment variable, or make it relative to "
        "the job directory.",
    )


_USER = '[user]\nname = "mara"\nuid = 1000\nhome = "/home/mara"\n'
_COLAB = "import pandas as pd\nframe = pd.read_csv('/content/drive/MyDrive/train.csv')\n"

RULE = Rule(
    title="A path belongs to another machine",
    category="path_not_found",
    why="Home directories, drive letters and the directories of notebook services do not exist "
    "on a cluster. Such a path fails only when its line is reached.",
    fix="Take the path from an argument or an environment variable.",
    source="Zhang et al., ICSE 2020, section 5.1: parameterise paths and verify them early",
    check=path_check("path-laptop", _describe),
    catches=(
        Case({"train.py": "import numpy as np\nx = np.load('/Users/mara/data/x.npy')\n"}, line=2),
        Case({"train.py": "x = open('C:\\\\data\\\\train.txt').read()\n"}, line=1),
        Case({"train.py": "x = open('D:/data/train.txt').read()\n"}, line=1),
        Case({"train.py": _COLAB}, line=2),
        Case(
            {"train.py": "from PIL import Image\nImage.open('/kaggle/input/digits/0.png')\n"},
            line=2,
        ),
        Case(
            {"train.py": "import torch\ntorch.load('/home/jonas/models/best.pt')\n"},
            target=_USER,
            line=2,
        ),
        Case(
            {
                "train.py": "import torch\nROOT = '/home/jonas/runs'\nmodel = torch.nn.Linear(2, 2)\n"
                "for epoch in range(3):\n    torch.save(model, f'{ROOT}/{epoch}.pt')\n"
            },
            target=_USER,
            line=5,
        ),
    ),
    leaves=(
        Case({"train.py": "import torch\ntorch.load('/home/mara/models/best.pt')\n"}, target=_USER),
        Case({"train.py": _COLAB}, target='[[mounts]]\npath = "/content/drive"\n'),
        Case({"train.py": _COLAB}, target='[files]\n"/content/drive/MyDrive/train.csv" = true\n'),
        Case({"train.py": "import torch\ntorch.load('/home/jonas/models/best.pt')\n"}),
        Case(
            {
                "train.py": "import os\n\nif os.path.isdir('/kaggle/input'):\n"
                "    names = os.listdir('/kaggle/input')\n"
            }
        ),
        Case(
            {"train.py": "import torch\ntorch.load('/home/jonas/models/best.pt')\n"},
            target=_USER + '[[mounts]]\npath = "/home/jonas"\nwritable = false\n',
        ),
    ),
)
