"""A batch job starts in the home directory, not in the submission directory."""

from dataclasses import replace

from epochzero.check.rule import Claims, JobView, Rule
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(view: JobView) -> Claims:
    for problem in problems_of(view.program, "home"):
        yield claim_of(
            # On other systems the home directory may be the submission directory.
            replace(problem, certain=problem.certain and view.target.here),
            message=f"{problem.text} is searched in the home directory, where PBS and Grid Engine "
            "start a job.",
            consequence=f"{view.job.program}: can't open file '{problem.text}': No such file or directory",
        )


RULE = Rule(
    category="path_not_found",
    why="Slurm and LSF start a job in the submission directory. PBS, Torque and Grid Engine start "
    "a job in the home directory. A batch script that was written for another system often does "
    "not change the directory. The job then finds none of its files.",
    fix="For PBS and Torque, add `cd $PBS_O_WORKDIR` before the first command. For Grid Engine, "
    "add `#$ -cwd`.",
    source="PBS Professional User's Guide, PBS_O_WORKDIR; qsub(1) of Grid Engine, -cwd",
    check=_check,
    examples="""
        $ HOME=/nowhere qsub job.pbs
        ==> job.pbs <==
        #!/bin/bash
        #PBS -l walltime=1:00:00
        python train.py  # <-
        ==> train.py <==
        ---- ignored if
         #PBS -l walltime=1:00:00
        +cd $PBS_O_WORKDIR
        ----
        $ HOME=/nowhere qsub job.sge
        ==> job.sge <==
        #!/bin/bash
        #$ -cwd
        python train.py
        ==> train.py <==
    """,
)
