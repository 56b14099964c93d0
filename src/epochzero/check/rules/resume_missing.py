"""The job resumes from a checkpoint that does not exist."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check, where_searched
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    shown = world.platform.shown(problem.path)
    skipped = problem.detail == "skipped"
    return (
        f"The job resumes from {shown}, which does not exist (searched "
        f"{where_searched(world, problem.path)}).",
        "The job would silently start from the beginning and repeat the finished training."
        if skipped
        else f"FileNotFoundError: No such file or directory: '{shown}'",
        "Pass the path of an existing checkpoint, or remove the argument to start from the "
        "beginning.",
    )


_LIGHTNING = "import lightning.pytorch as pl\ntrainer = pl.Trainer()\n"
_FLAG = (
    "import argparse\nimport os\nimport torch\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--resume')\nargs = parser.parse_args()\n"
)

RULE = Rule(
    title="The job resumes from a checkpoint that does not exist",
    category="path_not_found",
    why="A restart that names a checkpoint that was never written fails, or silently starts from "
    "the beginning and spends the time again.",
    fix="Pass the path of an existing checkpoint.",
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
