"""`read_job`: the Python programs that a command line finally runs.

>>> from pathlib import Path
>>> from epochzero.check.launch import read_job
>>> read_job(["torchrun", "--nproc_per_node=4", "train.py"], Path.cwd()).jobs  # doctest: +SKIP
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.command import follow
from epochzero.check.launch.model import COMMAND, CommandSource, Job, Submission, Word
from epochzero.check.launch.setting import Record, Script, Setting
from epochzero.errors import InputError
from epochzero.file_access import is_folder


def read_job(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Submission:
    """Read a command, and the files that it names, down to the Python programs that it runs.

    Nothing is run and nothing is written.

    Args:
        arguments: the words of the command: ``["sbatch", "train.slurm"]``; also a script, a batch file or a manifest
            alone.
        folder: the directory in which it would be run.
        environment: the environment in which it would be run; None if unknown.

    Raises:
        InputError: it runs no Python program and its scripts have no problems, or the script does not exist, cannot be
            read or is not Python.
    """
    if not arguments:
        raise InputError(
            "missing command: pass the command that you would submit, such as `python train.py`"
        )
    root = Path(os.path.abspath(folder))
    if not is_folder(root):
        raise InputError(f"{folder} is not a directory")
    command = shlex.join(arguments)
    record = Record(root, environment, command, follow)
    draft = Job((), None, "", root, command=command, root=root)
    Setting(record, draft, Script(COMMAND, command, 0)).follow(_words(arguments, command))
    if not record.jobs and record.problems:
        record.jobs.append(draft)  # no program, but scripts with problems
    if not record.jobs and not record.unknowns:
        raise InputError(_nothing(arguments, record))
    return Submission(tuple(record.whole()), tuple(record.unknowns))


def _words(arguments: Sequence[str], command: str) -> list[Word]:
    words, column = [], 1
    for text in arguments:
        words.append(Word(text, SourceLocation(COMMAND, 0, column, command)))
        column += len(shlex.quote(text)) + 1
    return words


def _nothing(arguments: Sequence[str], record: Record) -> str:
    """Why a command runs no Python program, as text for users."""
    called = list(dict.fromkeys(source.text for source in record.programs))
    other_programs = f"; it runs {', '.join(called[:5])}" if called else ""
    return (
        f"`{record.command[:200]}` runs no Python program that can be read here{other_programs}. Pass the "
        "command that you submit: `python train.py`, a launcher with its arguments, a launch script, a batch file, a "
        "Kubernetes manifest or a docker command."
    )
