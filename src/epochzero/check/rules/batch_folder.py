"""A batch file that runs a script of the folder in which it is submitted, and starts in another."""

from __future__ import annotations

from dataclasses import replace

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(program: Program, target: Target) -> Claims:
    for one in problems_of(program, "home"):
        yield claim_of(
            # Elsewhere the home folder may be the one in which it is submitted.
            replace(one, certain=one.certain and target.here),
            message=f"{one.text} is looked for in the home folder, in which PBS and Grid Engine start "
            "a job.",
            consequence=f"{program.job.program}: can't open file '{one.text}': No such file or directory",
            fix="Write `cd $PBS_O_WORKDIR` before it, or `#$ -cwd` for Grid Engine.",
        )


_JOB = "#!/bin/bash\n#PBS -l walltime=1:00:00\n{}python train.py\n"

RULE = Rule(
    title="A batch file starts in the home folder and not where it is submitted",
    category="path_not_found",
    why="Slurm and LSF start a job where it is submitted; PBS, Torque and Grid Engine start it in the "
    "home folder. A batch file that comes from another system, or lacks one line, finds none of its "
    "files.",
    fix="Write `cd $PBS_O_WORKDIR` before the first command, or `#$ -cwd` for Grid Engine.",
    source="PBS Professional User's Guide, PBS_O_WORKDIR; qsub(1) of Grid Engine, -cwd",
    check=_check,
    catches=(
        Case(
            {"job.pbs": _JOB.format(""), "train.py": ""},
            command=("qsub", "job.pbs"),
            environment={"HOME": "/nowhere"},
            path="job.pbs",
            line=3,
        ),
    ),
    leaves=(
        Case(
            {"job.pbs": _JOB.format("cd $PBS_O_WORKDIR\n"), "train.py": ""},
            command=("qsub", "job.pbs"),
            environment={"HOME": "/nowhere"},
        ),
        Case(
            {"job.sge": "#!/bin/bash\n#$ -cwd\npython train.py\n", "train.py": ""},
            command=("qsub", "job.sge"),
            environment={"HOME": "/nowhere"},
        ),
    ),
)
