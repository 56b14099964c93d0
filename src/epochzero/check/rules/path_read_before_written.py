"""The program reads a file before it writes it."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    shown = world.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown}, which the program writes only later.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        f"Write {shown} first, or check that it exists before reading it.",
    )


RULE = Rule(
    title="The program reads a file before it writes it",
    category="path_not_found",
    why="On the author's machine the file exists from an earlier run. The first run on a clean "
    "target fails.",
    fix="Write the file before reading it, or check that it exists.",
    source="Zhang et al., ICSE 2020, section 4.2: Path Not Found",
    check=path_check("path-read-before-written", _describe),
    catches=(
        Case(
            {
                "train.py": "import torch\n\nmodel = torch.nn.Linear(2, 2)\n"
                "model.load_state_dict(torch.load('best.pt'))\ntorch.save(model, 'best.pt')\n"
            },
            line=4,
        ),
        Case(
            {
                "train.py": "import json\n\nseen = json.load(open('seen.json'))\n"
                "with open('seen.json', 'w') as file:\n    json.dump(seen, file)\n"
            },
            line=3,
        ),
        Case(
            {
                "train.py": "import numpy as np\n\ndef mean():\n    return np.load('mean.npy')\n\n"
                "def prepare():\n    np.save('mean.npy', np.zeros(3))\n\nmean()\nprepare()\n"
            },
            line=4,
        ),
        Case(
            {
                "train.py": "from pathlib import Path\n\nvocabulary = Path('vocab.txt')\n"
                "words = vocabulary.read_text().split()\nvocabulary.write_text(' '.join(words))\n"
            },
            line=4,
        ),
    ),
    leaves=(
        Case(
            {
                "train.py": "import torch\n\nmodel = torch.nn.Linear(2, 2)\nfor epoch in range(9):\n"
                "    if epoch % 4 == 3:\n        torch.load('last.pt')\n"
                "    torch.save(model, 'last.pt')\n"
            }
        ),
        Case(
            {
                "train.py": "import torch\n\nmodel = torch.nn.Linear(2, 2)\n"
                "torch.save(model, 'best.pt')\ntorch.load('best.pt')\n"
            }
        ),
        Case(
            {
                "train.py": "import os\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\n"
                "if os.path.exists('best.pt'):\n    torch.load('best.pt')\n"
                "torch.save(model, 'best.pt')\n"
            }
        ),
        Case(
            {
                "train.py": "import json\n\ntry:\n    seen = json.load(open('seen.json'))\n"
                "except OSError:\n    seen = []\njson.dump(seen, open('seen.json', 'w'))\n"
            }
        ),
        Case(
            {
                "train.py": "import torch\n\nmodel = torch.nn.Linear(2, 2)\n"
                "for epoch in range(3):\n    if epoch > 0:\n        torch.load('last.pt')\n"
                "    torch.save(model, 'last.pt')\n"
            }
        ),
    ),
)
