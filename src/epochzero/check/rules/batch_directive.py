"""A line of a batch file that the batch system refuses, or does not see."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "directive"):
        yield claim_of(
            one,
            message=one.text,
            consequence="sbatch: error: the job is not submitted, or ends at once without a log",
            fix="Write the option as sbatch(1) has it; give what depends on variables on the command "
            "line of sbatch.",
        )
    for one in problems_of(program, "ignored"):
        yield claim_of(
            one,
            message=one.text,
            consequence="No error: the job gets the defaults of the cluster instead.",
            fix="Begin the line with #SBATCH, above the first command.",
        )


def _batch(line: str, *, above: str = "") -> Case:
    text = f"#!/bin/bash\n{above}{line}\npython train.py\n"
    return Case(
        {"job.slurm": text, "train.py": ""},
        command=("sbatch", "job.slurm"),
        path="job.slurm",
        line=2 + above.count("\n"),
    )


RULE = Rule(
    title="A line with options of the batch system is wrong, or is not read",
    category="illegal_argument",
    why="The lines are comments to the shell, so that nothing tells of one that is misspelt. Slurm "
    "refuses what it cannot read and passes over what stands in another place; it expands no "
    "variables in them.",
    fix="Begin the line with #SBATCH, above the first command, and write the options as sbatch(1) has "
    "them.",
    source="Slurm documentation, sbatch: DESCRIPTION, OPTIONS --time, --mem, and FILENAME PATTERN",
    check=_check,
    catches=(
        _batch("# SBATCH --gres=gpu:4"),
        _batch("#SBATCH --gres=gpu:4", above="cd .\n"),
        _batch("#SBATCH --gpu-per-node=4"),
        _batch("#SBATCH --mem=16 GB"),
        _batch("#SBATCH --mem=1.5G"),
        _batch("#SBATCH --time=24h"),
        _batch("#SBATCH --output=$HOME/logs/%j.out"),
        _batch("#SBATCH --nodes = 2"),
    ),
    leaves=(
        _batch("#SBATCH --time=1-00:00:00 --mem=16GB -N 2-4 -n 8 # a remark"),
        _batch("##SBATCH --gres=gpu:4"),
        _batch("#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out"),
        _batch("#SBATCH --of-a-plug-in=4 --exclusive --mail-type=END,FAIL"),
    ),
)
