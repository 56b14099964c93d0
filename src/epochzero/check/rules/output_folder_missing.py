"""The output of a job goes to a directory that does not exist."""

import posixpath
import re
from collections.abc import Iterable, Iterator

from epochzero.check.launch.model import CommandSource, Job
from epochzero.check.paths.platform import Platform, beneath
from epochzero.check.rule import Claim, Claims, JobView, Rule, claim_at_start

_SURE = re.compile(r"[\w./+@,=-]+")
"""A literal directory: no variable, no home directory, no number of the job."""


def _check(view: JobView) -> Claims:
    job = view.job
    if job.container or job.working_folder or view.program.before is not None:
        return
    platform = Platform(job, view.target)
    for source in _of_slurm(job):
        others = [
            created
            for created in job.launch_script.makes
            if created.place.path != source.place.path
        ]
        yield from _claim(
            platform,
            source,
            others,
            "Slurm terminates the job at once (exit code 0:53), without any output",
            "Create {folder} before you call sbatch: commands in the batch file run too late.",
        )
    for source in _redirected(job):
        quiet = re.search(r"\|\s*tee\b", source.place.code) is not None
        yield from _claim(
            platform,
            source,
            job.launch_script.makes,
            f"tee: {source.text}: No such file or directory; nothing is logged"
            if quiet
            else f"bash: {source.text}: No such file or directory; the program is not run",
            "Create the directory first: mkdir -p {folder}",
            quiet=quiet,
        )


def _of_slurm(job: Job) -> Iterator[CommandSource]:
    for name in ("--output", "-o", "--error", "-e"):
        if f"sbatch {name}" in job.argument_sources:
            yield job.argument_sources[f"sbatch {name}"]


def _redirected(job: Job) -> Iterator[CommandSource]:
    """The file that the program's own line of the script writes, if nothing ran before it."""
    if job.launch_script.entered or any(
        _is_above(program, job) and program.text != "echo" for program in job.launch_script.programs
    ):
        return
    for source in job.launch_script.writes:
        if (source.place.path, source.place.line) == (job.at.path, job.at.line):
            yield source


def _is_above(source: CommandSource, job: Job) -> bool:
    return source.place.path == job.at.path and 0 < source.place.line < job.at.line


def _claim(
    platform: Platform,
    source: CommandSource,
    made: Iterable[CommandSource],
    consequence: str,
    fix: str,
    *,
    quiet: bool = False,
) -> Iterator[Claim]:
    folder = posixpath.dirname(source.text)
    base = platform.job.base.as_posix()
    path = platform.absolute(posixpath.join(base, folder))
    if not _SURE.fullmatch(folder) or platform.there(path) is not False:
        return
    if any(beneath(platform.absolute(posixpath.join(base, s.text)), path) for s in made):
        return
    # Paths that git ignores may exist only on the target.
    perhaps = quiet or (platform.ignored(path) and not platform.target.here)
    yield claim_at_start(
        source.place,
        severity="warning" if perhaps else "error",
        message=f"The output goes to {source.text}, but the directory {folder} does not exist.",
        consequence=consequence,
        fix=fix.format(folder=folder),
    )


RULE = Rule(
    category="path_not_found",
    why="Slurm does not create the directory of the log file and prints no error. The job ends "
    "with an exit code and without a log. The shell does not run a program whose output is "
    "redirected into a missing directory.",
    fix="Create the directory before you submit the job.",
    source="Slurm documentation, sbatch, --output; Bash manual, Redirections",
    check=_check,
    examples="""
        $ sbatch run.sh
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --output=logs/%j.out  # <-
        python train.py
        ==> train.py <==
        ---- caught if
         #SBATCH --output=logs/%j.out  # <-
        +mkdir -p logs
        ---- ignored if
         ==> train.py <==
        +==> logs/.keep <==
        ----
        $ bash run.sh
        ==> run.sh <==
        python train.py > logs/train.log 2>&1  # <-
        ==> train.py <==
        ---- ignored if
         ==> run.sh <==
        +tar xf data.tar
    """,
)
