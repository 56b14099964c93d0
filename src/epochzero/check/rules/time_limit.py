"""The job requests more time than the target allows."""

from epochzero.check.rule import Claims, JobView, Rule, claim_at_start
from epochzero.check.rules.world import TIME_OPTIONS, in_hours, said_at


def _check(view: JobView) -> Claims:
    asked, most = view.job.allocation.time_limit_s, view.target.time_limit_s
    if asked is None or most is None or asked <= most:
        return
    yield claim_at_start(
        said_at(view.job, *TIME_OPTIONS),
        message=f"The job requests {in_hours(asked)}, but the target allows {in_hours(most)}.",
        consequence="The scheduler rejects the job, leaves it in the queue, or ends it at its own limit",
        fix=f"Request at most {in_hours(most)}, and save checkpoints from which a next job "
        "resumes.",
    )


RULE = Rule(
    category="interrupted",
    why="Partitions have different time limits. Slurm rejects a job that requests more time than "
    "the partition allows, or leaves the job pending forever with the reason PartitionTimeLimit.",
    fix="Request less time, and resume the training from checkpoints.",
    source="sbatch(1), --time",
    check=_check,
    examples="""
        $ sbatch run.sh
        ==> train.py <==
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --time=2-00:00:00  # <-
        python train.py
        ==> target.toml <==
        time_limit_s = 86400
        ---- ignored if
        -#SBATCH --time=2-00:00:00
        +#SBATCH --time=1-00:00:00
        ---- ignored if
        -==> target.toml <==
        -time_limit_s = 86400
    """,
)
