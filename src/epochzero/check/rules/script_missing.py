"""A launch script runs a program that does not exist."""

from epochzero.check.rule import Claims, JobView, Rule, claim_at_start


def _check(view: JobView) -> Claims:
    job = view.job
    if job.fault:
        name = job.script or job.module
        yield claim_at_start(
            job.at,
            severity="error" if job.certain else "warning",
            message=f"The job runs {job.fault}{'' if job.fault.endswith('?') else '.'}",
            consequence=f"{job.program}: can't open file '{name}'"
            if job.script
            else f"{job.program}: No module named {name}",
        )


RULE = Rule(
    category="path_not_found",
    why="A launch script usually runs several programs in sequence, with the evaluation last. The "
    "job can fail after the training if a file was renamed or if the script changes its working "
    "directory.",
    fix="Correct the file name, or add the file to the job.",
    source="Zhang et al., ICSE 2020, Table 1: Path Not Found, 1,954 of 4,960 failures",
    check=_check,
    examples="""
        $ bash run.sh
        ==> run.sh <==
        python train.py
        python evalute.py  # <-
        ==> train.py <==
        ==> evaluate.py <==
        ---- ignored if
        -python evalute.py
        +python evaluate.py
    """,
)
