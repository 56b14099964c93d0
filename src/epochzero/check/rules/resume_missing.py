"""Training is to go on from a checkpoint that is not there."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check, where_searched
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    shown = world.platform.shown(problem.path)
    skipped = problem.detail == "skipped"
    return (
        f"the checkpoint {shown}, given to go on from, is not there "
        f"(looked for {where_searched(world, problem.path)}).",
        "The job would begin anew, without an error, and train again what was trained before."
        if skipped
        else f"FileNotFoundError: No such file or directory: '{shown}'",
        "Give the path of a checkpoint that is there, or leave the argument away to begin anew.",
    )


_LIGHTNING = "import lightning.pytorch as pl\ntrainer = pl.Trainer()\n"
_FLAG = (
    "import argparse\nimport os\nimport torch\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--resume')\nargs = parser.parse_args()\n"
)

RULE = Rule(
    title="The checkpoint to go on from is not there",
    category="path_not_found",
    why="A restart that names a checkpoint which was never written fails, or begins anew without "
    "a word and spends the time again.",
    fix="Give the path of a checkpoint that is there.",
    source="Zhang et al., ICSE 2020, section 4.2; documentation of Lightning: ckpt_path",
    check=path_check("resume-missing", _describe),
    catches=(
        Case({"train.py": f"{_LIGHTNING}trainer.fit(None, ckpt_path='runs/last.ckpt')\n"}, line=3),
        Case(
            {"train.py": f"{_FLAG}if args.resume:\n    torch.load(args.resume)\n"},
            ("--resume", "runs/last.pt"),
            line=8,
        ),
        Case(
            {"train.py": f"{_FLAG}if os.path.isfile(args.resume):\n    torch.load(args.resume)\n"},
            ("--resume", "runs/last.pt"),
            line=7,
        ),
        Case(
            {
                "train.py": "from transformers import Trainer\ntrainer = Trainer(None)\n"
                "trainer.train(resume_from_checkpoint='./out/checkpoint-500')\n"
            },
            line=3,
        ),
    ),
    leaves=(
        Case(
            {
                "train.py": f"{_LIGHTNING}trainer.fit(None, ckpt_path='runs/last.ckpt')\n",
                "runs/last.ckpt": "x",
            }
        ),
        Case({"train.py": f"{_LIGHTNING}trainer.fit(None, ckpt_path='best')\n"}),
        Case({"train.py": f"{_FLAG}if args.resume:\n    torch.load(args.resume)\n"}),
        Case({"train.py": "import torch\ntorch.save({}, 'last.pt')\ntorch.load('last.pt')\n"}),
    ),
)
