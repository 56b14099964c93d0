"""A data file or directory is empty."""

from __future__ import annotations

from epochzero.check.paths.faults import Faulty, data_check
from epochzero.check.rules.base import Case, Rule


def _fix(faulty: Faulty) -> str:
    return f"Fill {faulty.shown}, or pass the correct path of the data."


_GLOB = "from pathlib import Path\nfiles = sorted(Path('data').glob('*/*.png'))\n"
_FOLDER = "from torchvision.datasets import ImageFolder\ndata = ImageFolder('images')\n"

RULE = Rule(
    title="A data file or directory is empty",
    category="corrupt_data",
    why="A file that was created but never filled, or a pattern that matches nothing, ends the "
    "job when it is read, or the job continues without data.",
    fix="Fill the file, or pass the correct path of the data.",
    source="Zhang et al., ICSE 2020, section 4.4: Corrupt Data",
    check=data_check("empty", _fix),
    catches=(
        Case({"train.py": "import pandas as pd\npd.read_csv('a.csv')\n", "a.csv": ""}, line=2),
        Case(
            {"train.py": "import json\nsettings = json.load(open('a.json'))\n", "a.json": ""},
            line=2,
        ),
        Case({"train.py": _GLOB, "data/0/a.jpg": "x"}, line=2),
        Case({"train.py": "import torch\ntorch.load('last.pt')\n", "last.pt": ""}, line=2),
        Case({"train.py": _FOLDER, "images/readme.txt": "x"}, line=2),
        Case({"train.py": f"{_GLOB}last = files[-1]\n", "data/0/a.jpg": "x"}, line=3),
    ),
    leaves=(
        Case({"train.py": "import pandas as pd\npd.read_csv('a.csv')\n", "a.csv": "a,b\n1,2\n"}),
        Case({"train.py": "text = open('notes.txt').read()\n", "notes.txt": ""}),
        Case({"train.py": _GLOB, "data/0/a.png": "x"}),
        Case(
            {
                "train.py": "import glob\nimport torch\n\nfor epoch in range(9):\n"
                "    torch.save({}, f'runs/{epoch}.pt')\nlast = sorted(glob.glob('runs/*.pt'))[-1]\n",
                "runs/notes.txt": "x",
            }
        ),
        Case({"train.py": f"open('data/0/a.png', 'w').write('x')\n{_GLOB}", "data/0/b.txt": "x"}),
        Case(
            {
                "train.py": "import pandas as pd\nfrom pandas.errors import EmptyDataError\ntry:\n"
                "    pd.read_csv('a.csv')\nexcept EmptyDataError:\n    pass\n",
                "a.csv": "",
            }
        ),
    ),
)
