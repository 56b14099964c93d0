"""Jobs: what a command line finally runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from epochzero.check.findings import SourceLocation, Unknown

COMMAND = "<command>"
"""The path of locations on the command line itself."""


_AT = SourceLocation(COMMAND)


@dataclass(frozen=True, slots=True)
class CommandSource:
    """The location of a part of the job: in one of its files, or on the command line itself."""

    place: SourceLocation
    text: str

    @property
    def in_place(self) -> str:
        """The text, preceded by as many empty lines as precede it in its file."""
        return "\n" * max(self.place.line - 1, 0) + self.text


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command.

    Attributes:
        text: the text; as written if it is unknown.
        place: location.
        known: whether the text is certain.
        many: whether it may be any number of words, such as an unknown ``$ARGS``.
        parts: for a partly known word its parts, each with whether it is known.
    """

    text: str
    place: SourceLocation
    known: bool = True
    many: bool = False
    parts: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptProblem:
    """A problem of a shell script, whatever it runs.

    Attributes:
        kind: ``syntax``, ``line ends``, ``option`` (in the position of a command), ``unset`` (a variable), ``root`` (a path
            that begins with such a variable), ``mode``, ``first line``, ``interpreter``, ``pipe``, ``background``,
            ``environment`` (a missing Python environment), ``directive`` (that the batch system rejects), ``ignored`` (a
            directive that it ignores), ``volume`` (that a pod mounts and does not declare), or ``home`` (a script that is
            expected in the home directory).
        place: location.
        text: the variable, the word, or the shell's message.
        certain: whether it is certainly reached and fails.
    """

    kind: str
    place: SourceLocation
    text: str
    certain: bool


@dataclass(frozen=True, slots=True)
class Allocation:
    """The machines that a job gets, as its launchers and batch system are asked; None for what is not specified.

    Attributes:
        nodes: number of nodes.
        processes_per_node: number of processes on each.
        processes: total number of processes.
        gpus_per_node: GPUs of each node.
        gpus: total number of GPUs.
        cpus: per process.
        memory_bytes: per node.
        shared_memory_bytes: of the container, as specified or by its engine's default; None if it is that of the machine, or
            unknown.
        time_limit_s: time after which the batch system ends the job.
    """

    nodes: int | None = None
    processes_per_node: int | None = None
    processes: int | None = None
    gpus_per_node: int | None = None
    gpus: int | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    shared_memory_bytes: int | None = None
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class LaunchScript:
    """What the scripts around a program do, before and after it.

    Attributes:
        installs: arguments of each ``pip install`` that is run before the program.
        requires: distributions that its launcher installs for it (``uv run``).
        activated: what is activated before the program (``module load cuda``, ``conda activate e``,
            ``source venv/bin/activate``).
        entered: directories that the script changes to before the program, as written.
        programs: other programs that are certainly called, including launchers and scripts, with their locations.
        writes: files that the script or launcher writes: redirected output, logs.
        makes: directories that the script creates.
        problems: problems of the scripts themselves.
        in_background: whether the script continues while the program runs.
        waits: how often the script has waited, before the program, for what runs in the background.
        stops_at_error: whether the script exits at the first command that fails (``set -e``).
    """

    installs: tuple[CommandSource, ...] = ()
    requires: tuple[str, ...] = ()
    activated: tuple[CommandSource, ...] = ()
    entered: tuple[CommandSource, ...] = ()
    programs: tuple[CommandSource, ...] = ()
    writes: tuple[CommandSource, ...] = ()
    makes: tuple[CommandSource, ...] = ()
    problems: tuple[ScriptProblem, ...] = ()
    in_background: bool = False
    waits: int = 0
    stops_at_error: bool = False


@dataclass(frozen=True)
class Job:
    """A Python program with its arguments, as its launchers start it.

    Attributes:
        argv: the program's own arguments, without the script; as written if unknown.
        script: the file that is run, absolute; None for a module outside of the job's directory.
        module: the module of ``python -m``; empty for a script.
        code: the program itself if it is part of the command (``python -c``) or its standard input
            (``python - <<EOF``); None for a script or module.
        folder: absolute working directory on this machine.
        program: the interpreter as written (``python3``, ``/opt/conda/bin/python``).
        environment: variables that the command, the launcher or the batch file sets; None for a value that is not constant.
        launchers: the launchers of the program, the outermost first (``sbatch``, ``srun``, ``torchrun``).
        allocation: the machines that it gets.
        launch_script: what the scripts around it do.
        container: the image, if the command names one.
        mounts: directories in the container, path inside -> path outside.
        read_only: the mounts (paths inside) that cannot be written.
        working_folder: working directory on the target, if the command sets it (``docker -w``, ``#SBATCH --chdir``).
        prefix: directory of the active Python environment (``.venv``, a conda environment); empty if the command activates
            none, None if it is unknown.
        interpreter: absolute path of the Python on this machine that runs it; None if unknown.
        argument_sources: locations of launcher arguments by name (``--nproc_per_node``, ``--gres``), and by launcher and name
            (``sbatch --nodes``), since launchers share names; also those of exported variables, by their names.
        command: the whole command, for people.
        at: location at which the program is named.
        argv_at: location of each item of ``argv``.
        unsure: positions in ``argv`` with an unknown text.
        complete: whether ``argv`` certainly has all arguments; otherwise an unknown one may be several.
        certain: whether the program certainly runs: under no unknown condition.
        fault: why its script cannot be read, for people: it does not exist or is not Python; empty if it can.
        root: the directory from which the job was submitted, to which locations are relative; None if it is ``folder``.
    """

    argv: tuple[str, ...]
    script: Path | None
    module: str
    folder: Path
    program: str = "python"
    environment: Mapping[str, str | None] = field(default_factory=dict)
    launchers: tuple[str, ...] = ()
    allocation: Allocation = Allocation()
    launch_script: LaunchScript = LaunchScript()
    container: str = ""
    mounts: Mapping[str, str] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()
    working_folder: str = ""
    prefix: str | None = ""
    interpreter: Path | None = None
    argument_sources: Mapping[str, CommandSource] = field(default_factory=dict)
    command: str = ""
    at: SourceLocation = _AT
    argv_at: tuple[SourceLocation, ...] = ()
    unsure: frozenset[int] = frozenset()
    complete: bool = True
    certain: bool = True
    fault: str = ""
    root: Path | None = None
    code: CommandSource | None = None

    @property
    def base(self) -> Path:
        """The directory to which locations are relative."""
        return self.root or self.folder

    @property
    def ranks(self) -> int:
        """The total number of processes as far as it is known: that of one node if the number of nodes is unknown."""
        return self.allocation.processes or self.allocation.processes_per_node or 1

    def with_allocation(self, **changes: float | None) -> Job:
        """The job with other machines; the names are those of `Allocation`."""
        return replace(self, allocation=replace(self.allocation, **changes))  # type: ignore[arg-type]

    def with_script(self, **changes: Any) -> Job:
        """The job with other effects of its scripts; the names are those of `LaunchScript`."""
        return replace(self, launch_script=replace(self.launch_script, **changes))

    @property
    def is_program(self) -> bool:
        """Whether there is a program to read; otherwise there are only the scripts around it."""
        return bool(self.script or self.module or self.code) and not self.fault

    def says(self, place: SourceLocation | None) -> bool:
        """Whether a location is part of the job's command line, wherever that is written."""
        return place is not None and (
            place.path == COMMAND or place == self.at or place in self.argv_at
        )


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission.

    Attributes:
        jobs: the Python programs that it runs, in the order of its script.
        unknowns: what could not be followed.
    """

    jobs: tuple[Job, ...]
    unknowns: tuple[Unknown, ...] = ()
