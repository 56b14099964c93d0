"""A launch script changes to a directory that does not exist."""

import re
from collections.abc import Iterator
from pathlib import Path

from epochzero.check.launch.model import COMMAND, CommandSource, Job
from epochzero.check.rule import Claims, JobView, Rule, claim_at_start
from epochzero.file_access import readable

_SURE = re.compile(r"[\w./+@%,=-]+")
"""A literal directory: no variable, no home directory, no pattern."""


def _check(view: JobView) -> Claims:
    job = view.job
    # An earlier command may have created it.
    if job.container or job.working_folder or view.program.before is not None:
        return
    for source in _missing(job):
        yield claim_at_start(
            source.place,
            severity="error" if job.launch_script.stops_at_error and job.certain else "warning",
            message=f"The script changes to {source.text}, which does not exist.",
            consequence=f"cd: {source.text}: No such file or directory; the following commands do not "
            "run, or run in another directory",
        )


def _missing(job: Job) -> Iterator[CommandSource]:
    """The first directory that certainly does not exist; the location of later ones is unknown."""
    folder = job.base
    for source in job.launch_script.entered:
        text = source.text
        if not _SURE.fullmatch(text) or text.startswith(("/", "-")) or source.place.path == COMMAND:
            return
        folder = folder / text
        if readable(folder) and not folder.exists():
            if "||" not in source.place.code and not _may_be_made(job, source, folder):
                yield source
            return


def _may_be_made(job: Job, entered: CommandSource, folder: Path) -> bool:
    """Whether the script creates the directory, or first runs something that may create it."""
    if any(
        (job.base / created.text).resolve().is_relative_to(folder.resolve())
        for created in job.launch_script.makes
    ):
        return True
    return any(
        program.place.line < entered.place.line and program.text != "echo"
        for program in job.launch_script.programs
    )


RULE = Rule(
    category="path_not_found",
    why="A script may contain the old name of a renamed directory. A relative path is wrong if "
    "the script starts in an unexpected directory. Without `set -e`, the script continues in the "
    "current directory.",
    fix="Correct the path, or create the directory before the script changes to it.",
    source="Zhang et al., ICSE 2020, Table 1: Path Not Found, 1,954 of 4,960 failures",
    check=_check,
    examples="""
        $ bash run.sh
        ==> run.sh <==
        set -e
        cd experiments  # <-
        python ../train.py
        ==> train.py <==
        ---- ignored if
         ==> train.py <==
        +==> experiments/a <==
        ---- ignored if
         ==> run.sh <==
        +mkdir -p experiments
        ----
        $ bash run.sh
        ==> run.sh <==
        cd $HOME || exit
        python train.py
        ==> train.py <==
    """,
)
