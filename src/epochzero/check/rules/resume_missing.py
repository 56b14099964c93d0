"""The job resumes from a checkpoint that does not exist."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check, where_searched


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    shown = paths.platform.shown(problem.path)
    skipped = problem.detail == "skipped"
    return (
        f"The job resumes from {shown}, which does not exist (searched "
        f"{where_searched(paths, problem.path)}).",
        "The job would silently start from the beginning and repeat the finished training."
        if skipped
        else f"FileNotFoundError: No such file or directory: '{shown}'",
        "Pass the path of an existing checkpoint, or remove the argument to start from the "
        "beginning.",
    )


RULE = Rule(
    category="path_not_found",
    why="If the checkpoint does not exist, a restart may fail. Some programs silently start from "
    "the beginning and repeat the training.",
    fix="Pass the path of an existing checkpoint.",
    source="Zhang et al., ICSE 2020, section 4.2; documentation of Lightning: ckpt_path",
    check=path_check("resume-missing", _describe),
    examples="""
        import lightning.pytorch as pl
        trainer = pl.Trainer()
        trainer.fit(None, ckpt_path='runs/last.ckpt')  # <-
        ---- ignored if
         trainer.fit(None, ckpt_path='runs/last.ckpt')
        +==> runs/last.ckpt <==
        +x
        ----
        import argparse
        import os
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument('--resume')
        args = parser.parse_args()
        if args.resume:
            torch.load(args.resume)
        ---- caught if
        +$ python train.py --resume runs/last.pt
         import argparse
        @@
        -if args.resume:
        +if os.path.isfile(args.resume):  # <-
        ----
        from transformers import Trainer
        trainer = Trainer(None)
        trainer.train(resume_from_checkpoint='./out/checkpoint-500')  # <-
        ----
        import torch
        torch.save({}, 'last.pt')
        torch.load('last.pt')
    """,
)
