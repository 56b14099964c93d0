"""A batch script ends before its job."""

from epochzero.check.rule import Rule
from epochzero.check.rules.scripts import script_check

RULE = Rule(
    category="interrupted",
    why="A batch system considers a job complete when the batch script exits. The batch system "
    "then kills the background processes of the job. The same script works on a personal computer.",
    fix="Write `wait` at the end of the script, or remove the `&`.",
    source="Slurm documentation, sbatch: the batch script's end terminates the job's allocation",
    check=script_check(
        "background",
        message="The program is started in the background, and the batch script does not wait "
        "for it.",
        consequence="The batch system ends what still runs when the script ends.",
    ),
    examples="""
        $ sbatch job.slurm
        ==> job.slurm <==
        #!/bin/bash
        #SBATCH -n 1
        python train.py &  # <-
        ==> train.py <==
        ----
        $ sbatch job.slurm
        ==> job.slurm <==
        #!/bin/bash
        python train.py &
        wait
        ==> train.py <==
        ----
        $ bash run.sh
        ==> run.sh <==
        nohup python train.py > log &
        ==> train.py <==
    """,
)
