"""A file or directory that the program reads does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.paths.report import Texts, path_check, where_searched
from epochzero.check.paths.world import Problem, World, world_of
from epochzero.check.rules.base import Case, Claim, Program, Rule, Target, Unknown


def _describe(problem: Problem, world: World) -> Texts:
    access, shown = problem.access, world.platform.shown(problem.path)
    near = f"; a similar path is {problem.detail}" if problem.detail else ""
    ask = f"Did you mean {problem.detail}? " if problem.detail else ""
    if "\\" in problem.path and problem.detail:
        ask = f"Write {problem.detail}: only Windows accepts \\ as a path separator. "
    if access.text.beginning.startswith("~") and not access.text.home:
        ask = f"{access.function} does not expand ~: call os.path.expanduser on the path. "
    if access.does == "globs":
        consequence = (
            f"{access.function} would find no file, and the job would continue without data."
        )
    elif access.use.quiet:
        consequence = f"{access.function} would return no data, and the next step would fail."
    else:
        consequence = f"FileNotFoundError: No such file or directory: '{shown}'"
    return (
        f"{access.function} reads {shown}, which does not exist{near} (searched "
        f"{where_searched(world, problem.path)}).",
        consequence,
        f"{ask}Copy {shown} to the machine that runs the job, or pass the correct path as an "
        "argument.",
    )


_missing = path_check("path-not-found", _describe)


def _check(program: Program, target: Target) -> Iterator[Claim | Unknown]:
    yield from _missing(program, target)
    yield from world_of(program, target).unknowns


_IMAGES = "import glob\nimport torch\nfrom torchvision import datasets\n"

RULE = Rule(
    title="A file or directory that the program reads does not exist",
    category="path_not_found",
    why="A missing path is the most frequent failure of all. If only the evaluation reads it, "
    "the failure costs the whole training run.",
    fix="Copy the file to the target, or take its path from an argument and check it at startup.",
    source="Zhang et al., ICSE 2020, Table 1: 39.4 % of 4,960 failures",
    check=_check,
    catches=(
        Case(
            {"train.py": "open('/data/val/x.csv').read()\nopen('/data/test/x.csv').read()\n"},
            target='listed = ["/data"]\n[files]\n"/data" = true\n"/data/val" = true\n',
            line=2,
        ),
        Case(
            {
                "train.py": "import pandas as pd\n\nframe = pd.read_csv('data/train.csv')\n",
                "data/training.csv": "a,b\n1,2\n",
            },
            line=3,
        ),
        Case(
            {
                "train.py": "import os\nimport torch\n\nos.makedirs('out/checkpoints')\n"
                "model = torch.nn.Linear(8, 2)\n"
                "for epoch in range(6):\n"
                "    torch.save(model.state_dict(), f'out/checkpoints/best_epoch{epoch}.pt')\n"
                "model.load_state_dict(torch.load('out/checkpoints/best.pt'))\n"
            },
            line=8,
        ),
        Case({"train.py": f"{_IMAGES}data = datasets.ImageFolder('images/train')\n"}, line=4),
        Case(
            {
                "train.py": "from pathlib import Path\n\nROOT = Path(__file__).resolve().parent\n"
                "def labels():\n    return (ROOT / 'labels.txt').read_text().split()\n\n"
                "print(labels())\n"
            },
            line=5,
        ),
        Case(
            {"train.py": "import numpy as np\nx = np.load('/data/x.npy')\n"},
            target='[files]\n"/data/x.npy" = false\n',
            line=2,
        ),
        Case(
            {"train.py": "for fold in range(5):\n    open(f'folds/{fold}.txt').read()\n"},
            line=2,
        ),
        Case(
            {
                "train.py": "import pandas as pd\npd.read_csv('data\\\\a.csv')\n",
                "data/a.csv": "a\n1\n",
            },
            line=2,
        ),
        Case(
            {
                "train.py": "from datasets import load_dataset\n\n"
                "data = load_dataset('csv', data_files={'train': 'a.csv', 'test': 'b.csv'})\n",
                "a.csv": "a\n1\n",
            },
            line=3,
        ),
        Case({"train.py": "lines = open('~/data/train.txt').readlines()\n"}, line=1),
        Case({"train.py": f"{_IMAGES}files = sorted(glob.glob('frames/*.png'))\n"}, line=4),
    ),
    leaves=(
        Case(
            {"train.py": "open('/data/val/x.csv').read()\nopen('/data/train/b.csv').read()\n"},
            target='listed = ["/data"]\n[files]\n"/data" = true\n"/data/val" = true\n'
            '"/data/val/x.csv" = true\n"/data/train" = true\n',
        ),
        *(
            Case({"train.py": f"from datasets import load_dataset\nload_dataset({given})\n"})
            for given in (
                "'user/reviews', data_files='b.csv'",
                "'csv', data_files='b.csv', data_dir='user'",
                "'json', data_files=['shards/*.json']",
                "'json', data_files='https://example.org/b.json'",
            )
        ),
        Case(
            {
                "train.py": "import os\nimport argparse\nfrom torchvision import datasets\n\n"
                "parser = argparse.ArgumentParser()\n"
                "parser.add_argument('--data', default=os.path.expanduser('~/images/train'))\n"
                "print(datasets.ImageFolder(parser.parse_args().data))\n"
            }
        ),
        Case(
            {
                "train.py": "import pandas as pd\nframe = pd.read_csv('data/train.csv')\n",
                "data/train.csv": "a,b\n1,2\n",
            }
        ),
        Case(
            {
                "train.py": "import os\n\nif os.path.exists('vocab.txt'):\n"
                "    words = open('vocab.txt').read()\nelse:\n    words = ''\n"
            }
        ),
        Case(
            {
                "train.py": "import json\n\ntry:\n    state = json.load(open('state.json'))\n"
                "except FileNotFoundError:\n    state = {}\n"
            }
        ),
        Case(
            {
                "train.py": "import torch\nfrom torch import nn\n\nmodel = nn.Linear(2, 2)\n"
                "torch.save(model.state_dict(), 'model.pt')\n"
                "model.load_state_dict(torch.load('model.pt'))\n"
            }
        ),
        Case(
            {
                "train.py": "import gdown\nimport torch\n\n"
                "gdown.download('https://example.org/w', 'weights/w.pt')\n"
                "torch.load('weights/w.pt')\n"
            }
        ),
        Case(
            {
                "train.py": "import subprocess\nimport pandas as pd\n\n"
                "subprocess.run(['wget', 'https://example.org/data/train.csv'], check=True)\n"
                "frame = pd.read_csv('train.csv')\n"
            }
        ),
        Case(
            {
                "train.py": "from torchvision import datasets\ndatasets.MNIST('mnist', download=True)\n"
            }
        ),
        Case({"train.py": "import numpy as np\nx = np.load('/data/x.npy')\n"}),
        Case({"train.py": "import pandas as pd\npd.read_csv('https://example.org/train.csv')\n"}),
        Case({"train.py": "import pandas as pd\npd.read_csv('s3://bucket/train.csv')\n"}),
        Case(
            {
                "train.py": "from transformers import AutoModel\n"
                "model = AutoModel.from_pretrained('google/flan-t5-small')\n"
            }
        ),
        Case(
            {
                "train.py": "import fire\nfrom library import prepare\n\n"
                "prepare(out_dir='prepared')\ntext = open('prepared/train.txt').read()\n"
            }
        ),
    ),
)
