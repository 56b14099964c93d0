"""The command line has an argument that the program's parser does not define."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.command_line import argument_claims

_SCRIPT = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
"""


def _check(program: Program, target: Target) -> Claims:
    return argument_claims(
        program,
        {"unknown", "ambiguous"},
        "Remove {option}, or define it in the parser.",
    )


_LIGHTNING = {
    "train.py": "from lightning.pytorch import LightningModule\n"
    "from lightning.pytorch.cli import LightningCLI\n\n\n"
    "class Data:\n    def __init__(self, **options):\n        self.options = options\n\n\n"
    "class Net(LightningModule):\n    def __init__(self, width: int, lr: float = 0.1):\n"
    "        super().__init__()\n        self.lr = lr\n\n\nLightningCLI(Net, Data)\n",
    "right.yaml": "model:\n  width: 8\n  lr: 1e-3\ndata:\n  root: data\n",
    "wrong.yaml": "model:\n  widht: 8\n",
}

RULE = Rule(
    title="The command line has an argument that the program does not define",
    category="illegal_argument",
    why="An option was renamed in the code but not in the launch script, or belongs to another "
    "version of the program. The parser ends the job at startup, after the wait in the queue.",
    fix="Write the option as the parser defines it, or remove it.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=_check,
    catches=(
        Case(
            _LIGHTNING,
            ("fit", "--model.width", "8", "--model.learning_rate", "0.1"),
            path="<command>",
        ),
        Case(_LIGHTNING, ("fit", "--config", "wrong.yaml"), path="<command>"),
        Case({"train.py": _SCRIPT}, ("--lr", "1", "--epoch-count", "3"), path="<command>"),
        Case({"train.py": _SCRIPT}, ("--lr=1", "more"), path="<command>"),
        Case(
            {"run.sh": "set -e\npython train.py \\\n    --lrr 3\n", "train.py": _SCRIPT},
            command=("bash", "run.sh"),
            path="run.sh",
            line=3,
        ),
    ),
    leaves=(
        Case(_LIGHTNING, ("fit", "--config", "right.yaml", "--trainer.max_epochs=3")),
        Case(_LIGHTNING, ("test", "--model.width=8", "--data.anything", "1", "--ckpt_path=a.ckpt")),
        Case({"train.py": _SCRIPT}, ("--lr", "1", "--ep", "3")),
        Case({"train.py": _SCRIPT}, ()),
    ),
)
