"""The program writes into a directory that does not exist and that nothing creates."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    access, shown = problem.access, world.platform.shown(problem.path)
    quiet = access.use.parent == "quiet"
    error = (
        f"RuntimeError: Parent directory {shown} does not exist."
        if access.call.name == "torch.save"
        else f"FileNotFoundError: No such file or directory: '{shown}'"
    )
    return (
        f"{access.function} writes into {shown}, which does not exist and is not created "
        "before this call.",
        f"{access.function} would write nothing, without an error." if quiet else error,
        f"Create the directory first: os.makedirs('{shown}', exist_ok=True).",
    )


_MODEL = "import os\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\n"
_SAVE = "for epoch in range(5):\n    torch.save(model.state_dict(), f'checkpoints/{epoch}.pt')\n"

RULE = Rule(
    title="The program writes a file into a directory that does not exist",
    category="path_not_found",
    why="open, torch.save and to_csv do not create directories. On the author's machine the "
    "directory exists from earlier runs. On the target, the first checkpoint fails.",
    fix="Create the directory at startup with os.makedirs(directory, exist_ok=True).",
    source="Zhang et al., ICSE 2020, Figure 10: 40 hours of 4 GPUs lost to a missing directory",
    check=path_check("path-parent-missing", _describe),
    catches=(
        Case({"train.py": f"{_MODEL}{_SAVE}"}, line=6),
        Case(
            {
                "train.py": "import pandas as pd\n\ndef report(frame):\n"
                "    frame.describe().to_csv('reports/summary.csv')\n\n"
                "report(pd.DataFrame({'a': [1]}))\n"
            },
            line=4,
        ),
        Case({"train.py": "with open('logs/run.log', 'a') as log:\n    log.write('x')\n"}, line=1),
        Case(
            {
                "train.py": "import logging\n"
                "logging.basicConfig(filename='logs/train.log', level=logging.INFO)\n"
            },
            line=2,
        ),
        Case(
            {
                "train.py": "import json\nimport logging.config\n"
                "logging.config.dictConfig(json.load(open('logging.json')))\n",
                "logging.json": '{"version": 1, "handlers": {"file": {"class": "logging.FileHandler", '
                '"filename": "logs/train.log"}}}',
            },
            line=3,
        ),
        Case(
            {"train.py": "from pathlib import Path\nPath('a/b/c').mkdir(exist_ok=True)\n"}, line=2
        ),
        Case(
            {"train.py": "open('out/x', 'w')\n", "run.sh": "python train.py && mkdir -p out\n"},
            command=("bash", "run.sh"),
            line=1,
        ),
        Case(
            {
                "train.py": f"{_MODEL}best = 1.0\nfor epoch in range(9):\n"
                "    loss = model(torch.randn(4, 2)).sum().item()\n    if loss < best:\n"
                "        torch.save(model, 'models/best.pt')\n"
            },
            line=9,
        ),
        Case(
            {"train.py": "import matplotlib.pyplot as plt\nplt.savefig('figures/loss.png')\n"},
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": f"{_MODEL}os.makedirs('checkpoints', exist_ok=True)\n{_SAVE}"}),
        Case({"train.py": f"{_MODEL}{_SAVE}", "checkpoints/.gitkeep": ""}),
        Case(
            {
                "train.py": f"{_MODEL}if not os.path.exists('checkpoints'):\n"
                f"    os.makedirs('checkpoints')\n{_SAVE}"
            }
        ),
        Case({"train.py": f"{_MODEL}torch.save(model, 'model.pt')\n"}),
        Case(
            {
                "train.py": "from torch.utils.tensorboard import SummaryWriter\n"
                "writer = SummaryWriter('runs/first')\nopen('runs/notes.txt', 'w').write('x')\n"
            }
        ),
        Case(
            {
                "train.py": "import subprocess\nsubprocess.run(['mkdir', '-p', 'out'])\nopen('out/x', 'w')\n"
            }
        ),
        Case({"train.py": "open('/tmp/notes.txt', 'w').write('x')\n"}),
        Case(
            {"train.py": "open('out/x', 'w')\n", "run.sh": "mkdir -p out && python train.py\n"},
            command=("bash", "run.sh"),
        ),
    ),
)
