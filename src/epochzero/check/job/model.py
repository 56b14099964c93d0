"""What a command line finally runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epochzero.check.findings import SourceLocation, Unknown

COMMAND = "<command>"
"""The path of places on the command line itself."""


_AT = SourceLocation(COMMAND)


@dataclass(frozen=True, slots=True)
class CommandSource:
    """Where a part of the job was said: a file of it or the command line itself."""

    place: SourceLocation
    text: str

    @property
    def in_place(self) -> str:
        """The text below as many empty lines as there are above it where it stands."""
        return "\n" * max(self.place.line - 1, 0) + self.text


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command.

    Attributes:
        text: it; as written where it is not known.
        place: where it stands.
        known: whether the text is surely this.
        many: whether it may be any number of words, such as ``$ARGS`` that is not known.
        parts: of a word that is not known as a whole, where that can be told: the texts that it
            consists of, each with whether it is known.
    """

    text: str
    place: SourceLocation
    known: bool = True
    many: bool = False
    parts: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptProblem:
    """Something in a script of the shell that goes wrong, whatever it runs.

    Attributes:
        kind: ``syntax``, ``line ends``, ``option`` (in the place of a command), ``unset`` (a
            variable), ``root`` (a path that begins with such a variable), ``mode``, ``first line``,
            ``interpreter``, ``pipe``, ``background``, ``environment`` (of Python, that is not there), ``directive`` (that the batch system refuses),
            ``volume`` (that a pod mounts and does not declare),
            ``ignored`` (one that it does not see), or ``home`` (a script that is looked for there).
        place: where.
        text: what it is about: the variable, the word, the message of the shell.
        certain: whether it is surely reached and fails.
    """

    kind: str
    place: SourceLocation
    text: str
    certain: bool


@dataclass(frozen=True)
class Job:
    """A Python program with its arguments, as the launchers in front of it start it.

    Attributes:
        argv: the program's own arguments, without the script; as written where they are not known.
        script: the file that is run, absolute; None for a module that is not in the job's folder.
        module: name of the module of ``python -m``; empty for a script.
        code: the program itself, where it stands in the command (``python -c``) or on its standard input
            (``python - <<EOF``); None for a script or module.
        folder: the working folder of the run on this machine, absolute.
        program: the interpreter as written (``python3``, ``/opt/conda/bin/python``).
        environment: variables that the command, the launcher or the batch file sets, with their
            values where these are constant, else None.
        launchers: names of what stands before the program, the outermost first (``sbatch``,
            ``srun``, ``torchrun``).
        nodes: None where it is not said.
        processes_per_node: likewise.
        processes: in all; likewise.
        gpus_per_node: as the batch system was asked; likewise.
        gpus: in all; likewise.
        cpus: for each process, as the batch system or the container was asked; likewise.
        memory_bytes: per node, as the batch system was asked; likewise.
        shared_memory_bytes: of the container, as said or as its engine gives it when nothing is said;
            None where it is that of the machine, or not known.
        time_limit_s: likewise.
        seconds_per_epoch: as the project's settings say; likewise.
        container: image that it runs in, where the command says so.
        mounts: folders that the container sees, place inside -> place outside.
        read_only: those of the mounts (inside) that cannot be written.
        working_folder: on the target, where the command says so (``docker -w``, ``#SBATCH --chdir``).
        installs: arguments of each ``pip install`` that the job runs before the program.
        requires: distributions that its launcher installs for it: of ``uv run``.
        activated: what its script activates before the program (``module load cuda``,
            ``conda activate e``, ``source venv/bin/activate``).
        prefix: folder of the Python environment that is active (``.venv``, one of conda's); empty
            for none that the command says, None where it is not known which.
        interpreter: the Python of this machine that runs it, absolute; None where that cannot be told.
        entered: folders that its script changes to before the program, as written.
        programs: other programs that the job's script surely calls, launchers and scripts among
            them, before or after, with where it does.
        writes: files that its script or launcher writes: output that is redirected, logs.
        makes: folders that its script makes.
        problems: what goes wrong in its scripts themselves.
        in_background: whether its script goes on while it runs.
        waits: how often its script has waited, before it, for what runs in the background.
        stops_at_error: whether its script ends at the first command that fails (``set -e``).
        said: where launcher arguments stand, by name (``--nproc_per_node``, ``--gres``), for places of
            findings; by launcher and name (``sbatch --nodes``) too, since launchers share names.
            Variables that its script exports stand there by their names.
        command: the whole, for people.
        at: where the program is named.
        argv_at: where each of ``argv`` stands.
        unsure: positions in ``argv`` of which the text is not known.
        complete: whether ``argv`` are surely all; otherwise one that is not known may be several.
        certain: whether the program is surely run: under no condition that is not known to hold.
        fault: why its script cannot be read, for people: it is not there, is no Python; empty when
            it can.
        root: the folder from which the job was submitted, to which places are relative; None where
            it is ``folder``.
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
    processes: int | None = None
    gpus_per_node: int | None = None
    gpus: int | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    shared_memory_bytes: int | None = None
    time_limit_s: float | None = None
    seconds_per_epoch: float | None = None
    container: str = ""
    mounts: Mapping[str, str] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()
    working_folder: str = ""
    installs: tuple[CommandSource, ...] = ()
    requires: tuple[str, ...] = ()
    activated: tuple[CommandSource, ...] = ()
    prefix: str | None = ""
    interpreter: Path | None = None
    entered: tuple[CommandSource, ...] = ()
    programs: tuple[CommandSource, ...] = ()
    writes: tuple[CommandSource, ...] = ()
    makes: tuple[CommandSource, ...] = ()
    problems: tuple[ScriptProblem, ...] = ()
    in_background: bool = False
    waits: int = 0
    stops_at_error: bool = False
    said: Mapping[str, CommandSource] = field(default_factory=dict)
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
        """The folder to which places are relative."""
        return self.root or self.folder

    @property
    def ranks(self) -> int:
        """Processes in all as far as they are known: those of one node where the nodes are not."""
        return self.processes or self.processes_per_node or 1

    @property
    def is_program(self) -> bool:
        """Whether it is a program that can be read; else there are only the scripts around it."""
        return bool(self.script or self.module or self.code) and not self.fault

    def says(self, place: SourceLocation | None) -> bool:
        """Whether a place is one of its command line, wherever that is written."""
        return place is not None and (
            place.path == COMMAND or place == self.at or place in self.argv_at
        )


@dataclass(frozen=True, slots=True)
class Submission:
    """What a person submits.

    Attributes:
        jobs: the Python programs that it runs, in the order of its script.
        unknowns: what could not be followed.
    """

    jobs: tuple[Job, ...]
    unknowns: tuple[Unknown, ...] = ()
