"""What a command line finally runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epochzero.check.findings import Place

__all__ = ["Job", "Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a part of the job was said: a file of it or the command line itself."""

    place: Place
    text: str


@dataclass(frozen=True)
class Job:
    """A Python program with its arguments, as the launchers in front of it start it.

    Attributes:
        argv: the program's own arguments, without the script.
        script: the file that is run, absolute; None for a module that is not in the job's folder.
        module: name of the module of ``python -m``; empty for a script.
        folder: the working folder of the run on this machine, absolute.
        program: the interpreter as written (``python3``, ``/opt/conda/bin/python``).
        environment: variables that the command, the launcher or the batch file sets, with their
            values where these are constant, else None.
        launchers: names of what stands before the program, the outermost first (``sbatch``,
            ``srun``, ``torchrun``).
        nodes: None where it is not said.
        processes_per_node: likewise.
        gpus_per_node: as the batch system was asked; likewise.
        memory_bytes: per node, as the batch system was asked; likewise.
        time_limit_s: likewise.
        container: image that it runs in, where the command says so.
        mounts: folders that the container sees, place inside -> place outside.
        working_folder: on the target, where the command says so (``docker -w``, ``#SBATCH --chdir``).
        installs: arguments of each ``pip install`` that the job runs before the program.
        programs: other programs that the job's script calls, with where it does.
        said: where launcher arguments stand, by name (``--nproc_per_node``, ``--gres``), for places of
            findings.
        command: the whole, for people.
    """

    argv: tuple[str, ...]
    script: Path | None
    module: str
    folder: Path
    program: str = "python"
    environment: Mapping[str, str | None] = field(default_factory=dict)
    launchers: tuple[str, ...] = ()
    nodes: int | None = None
    processes_per_node: int | None = None
    gpus_per_node: int | None = None
    memory_bytes: int | None = None
    time_limit_s: float | None = None
    container: str = ""
    mounts: Mapping[str, str] = field(default_factory=dict)
    working_folder: str = ""
    installs: tuple[Source, ...] = ()
    programs: tuple[Source, ...] = ()
    said: Mapping[str, Source] = field(default_factory=dict)
    command: str = ""
