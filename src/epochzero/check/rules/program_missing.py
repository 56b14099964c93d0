"""The job starts a program that the target does not have."""

from collections.abc import Iterator

from epochzero.check.launch.model import Job
from epochzero.check.program.values import Constant
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Program,
    Rule,
    claim_at,
    claim_at_start,
    guarded,
)
from epochzero.check.rules.commands import started, words_of

# Words that the shell itself understands, and functions that login shells define.
_OF_THE_SHELL = frozenset(
    """
    . : [ [[ alias bg break case cd command continue declare echo eval exec exit export false fg
    for function getopts hash if jobs kill let local printf pwd read readonly return set shift
    shopt source test time times trap true type ulimit umask unalias unset until wait while {
    module conda
    """.split()
)


# Programs that submit the job; they run where the command is entered.
_SUBMITTERS = {"sbatch", "qsub", "bsub", "kubectl", "docker", "podman"}


def _check(view: JobView) -> Claims:
    if view.target.programs is None:
        return
    asked_for = _asked_for(view.program)
    for command in started(view.program):
        name = command.words[0]
        if (
            _is_missing(name, view.target.programs, command.shell)
            and name not in asked_for
            and not guarded(command.at, FileNotFoundError)
        ):
            yield claim_at(
                command.at,
                message=f"The job starts {name}, which is not on the PATH of the target.",
                consequence=f"{name}: command not found (exit status 127)"
                if command.shell
                else f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'",
                fix=f"Install {name} in the image, or remove the call.",
                # Without check=True the program continues after the shell fails.
                severity=None if command.raises else "warning",
            )
    yield from _of_script(view.job, view.target.programs)


def _of_script(job: Job, programs: frozenset[str]) -> Iterator[Claim]:
    """Programs that the launch script calls, and the launchers themselves."""
    if job.container:
        return  # Which of them run inside it is unknown.
    for source in job.launch_script.programs:
        name = next(iter(words_of(source.text)), "")
        if name not in _SUBMITTERS and _is_missing(name, programs, shell=True):
            yield claim_at_start(
                source.place,
                severity="error"
                if job.launch_script.stops_at_error or name in job.launchers
                else "warning",
                message=f"The script calls {name}, which is not on the PATH of the target.",
                consequence=f"{name}: command not found (exit status 127)",
                fix=f"Install {name} in the image, or remove the call.",
            )


def _is_missing(name: str, programs: frozenset[str], shell: bool) -> bool:
    return (
        bool(name)
        and "/" not in name
        and name not in programs
        and not (shell and name in _OF_THE_SHELL)
    )


def _asked_for(program: Program) -> set[str]:
    """Programs whose presence the job checks first."""
    return {
        value.value
        for call in program.calls
        if call.name in {"shutil.which", "distutils.spawn.find_executable"}
        for value in call.arguments[:1]
        if isinstance(value, Constant) and isinstance(value.value, str)
    }


RULE = Rule(
    category="library_not_found",
    why="Scoring scripts, video decoders and version control systems often run as separate "
    "programs. An image contains such programs only if its build installs them.",
    fix="Install the program in the image, or remove the call.",
    source="Zhang et al., ICSE 2020, section 3.2: differences between the local environment and the "
    "platform",
    check=_check,
    examples="""
        import subprocess
        subprocess.run(['ffmpeg', '-i', 'a.mp4'])  # <-
        ==> target.toml <==
        programs = ["bash", "python3"]
        ----
        import os

        os.system('git rev-parse HEAD')  # <-
        ==> target.toml <==
        programs = ["bash", "python3"]
        ----
        $ bash run.sh
        ==> run.sh <==
        set -e
        numactl -N 0 python train.py  # <-
        ==> train.py <==
        ==> target.toml <==
        programs = ["bash", "python"]
        ----
        import os
        os.system('git rev-parse HEAD')
        ----
        import os
        os.system('export A=1; git log')
        os.system('./run.sh')
        ==> target.toml <==
        programs = ["git"]
        ----
        import subprocess
        try:
            subprocess.check_output(['git', 'log'])
        except OSError:
            pass
        ==> target.toml <==
        programs = ["bash"]
        ----
        import shutil, subprocess
        if shutil.which('git'):
            subprocess.run(['git', 'log'])
        ==> target.toml <==
        programs = ["bash"]
    """,
)
