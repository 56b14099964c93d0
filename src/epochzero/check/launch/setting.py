"""The context of a command: the effects of the script up to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.launch.model import COMMAND, CommandSource, Job, ScriptProblem, Word
from epochzero.errors import InputError
from epochzero.file_access import is_folder, open_file

if TYPE_CHECKING:
    from tree_sitter import Node


LARGEST_BYTES = 4 << 20
MOST_JOBS = 100
MOST_STEPS = 5000
MOST_DEPTH = 30
LONGEST_VALUE = 1 << 16
MOST_ITEMS = 1000
AT_HOME = "the batch system starts it in the home directory"

Value = Word | tuple[Word, ...]
"""The value of a shell variable: an array is a tuple."""


def read_text(path: Path) -> str:
    """Read a file that a job's command names.

    Raises:
        InputError: it does not exist, is not a file, is not readable, is larger than 4 MB or binary.
    """
    try:
        with open_file(path) as file:
            data = file.read(LARGEST_BYTES + 1)
    except IsADirectoryError as error:
        raise InputError(f"{path} is a directory, not a file") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path} does not exist or is not a file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path} cannot be read: {reason}") from error
    if len(data) > LARGEST_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_BYTES >> 20} MB, the limit for a script")
    if b"\0" in data[:4096]:
        raise InputError(f"{path}: binary, not a script")
    return data.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Script:
    """A shell script or command text.

    Attributes:
        label: path in locations.
        text: source.
        line: line of the label at which it begins, from 1; 0 on the command line, which has no lines.
        path: as the shell knows it (``$0``); empty for ``bash -c``.
    """

    label: str
    text: str
    line: int = 1
    path: str = ""

    def place(self, row: int, column: int = 0) -> SourceLocation:
        """The location of a row and column of the text, both from 0."""
        lines = self.text.split("\n")
        code = lines[row].strip()[:200] if row < len(lines) else ""
        if not self.line:
            return SourceLocation(self.label, code=code)
        return SourceLocation(self.label, self.line + row, column + 1, code)


@dataclass(frozen=True, slots=True)
class ShellFunction:
    """A function of the shell."""

    body: Node
    script: Script


@dataclass(slots=True)
class Record:
    """The results of reading a submission, shared by all parts that read it.

    Attributes:
        root: absolute directory from which it is submitted.
        given: environment in which it is submitted; None if unknown.
        command: the whole command, for people.
        follow: follows a command in a setting to the programs that it runs.
        background: what was started in the background and not waited for, each with the number of programs started so far.
        waits: how often a script has waited for what runs in the background.
    """

    root: Path
    given: Mapping[str, str] | None
    command: str
    follow: Callable[[Sequence[Word], Setting], None]
    jobs: list[Job] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)
    programs: list[CommandSource] = field(default_factory=list)
    writes: list[CommandSource] = field(default_factory=list)
    makes: list[CommandSource] = field(default_factory=list)
    problems: list[ScriptProblem] = field(default_factory=list)
    background: list[tuple[CommandSource, int]] = field(default_factory=list)
    waits: int = 0
    steps: int = 0
    full: bool = False

    def unknown(self, what: str, reason: str, place: SourceLocation) -> None:
        """Record what could not be followed."""
        found = Unknown(what, reason, place)
        if found not in self.unknowns:
            self.unknowns.append(found)

    def problem(self, kind: str, place: SourceLocation, text: str, *, certain: bool) -> None:
        """Record a problem of a script, once."""
        found = ScriptProblem(kind, place, text, certain)
        if found not in self.problems:
            self.problems.append(found)

    def started(self) -> int:
        """Number of programs started so far."""
        return len(self.jobs) + len(self.programs)

    def whole(self) -> list[Job]:
        """The jobs, each with the effects of the whole script, before and after it."""
        return [
            job.with_script(
                programs=(*job.launch_script.programs, *self.programs),
                writes=(*job.launch_script.writes, *self.writes),
                makes=(*job.launch_script.makes, *self.makes),
                problems=(*job.launch_script.problems, *self.problems),
            )
            for job in self.jobs
        ]

    def step(self, place: SourceLocation) -> bool:
        """Count a command; return False if the limit is exceeded."""
        self.steps += 1
        if not self.full and (self.steps > MOST_STEPS or len(self.jobs) >= MOST_JOBS):
            self.full = True
            reason = f"only {MOST_STEPS} commands and {MOST_JOBS} programs are followed"
            self.unknown("the rest of the script", reason, place)
        return not self.full


@dataclass(slots=True)
class Setting:
    """The context of a command.

    Attributes:
        record: the results of all commands so far.
        draft: the job so far; its folder is the current directory.
        variables: of the shell, by name.
        exported: names of variables that programs see.
        arguments: ``$1`` and following, of the script or function.
        functions: by name.
        script: the script that is being walked.
        left: ``exit``, ``return``, ``break`` or ``continue`` if that was reached, else empty.
        sure: whether commands here are certainly run.
        lost: why the current directory is unknown; empty if it is known.
        fetched: what may have created missing files: ``git``; empty for nothing.
        options: shell options that are set: ``nounset``, ``pipefail``.
        blind: whether something that is not read may have set variables or defined functions.
        input: the here-document that is the command's input; None for any other input.
        depth: nesting depth of scripts, functions and launchers.
    """

    record: Record
    draft: Job
    script: Script
    variables: dict[str, Value] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    arguments: tuple[Word, ...] = ()
    functions: dict[str, ShellFunction] = field(default_factory=dict)
    left: str = ""
    sure: bool = True
    lost: str = ""
    fetched: str = ""
    options: frozenset[str] = frozenset()
    blind: bool = False
    input: Word | None = None
    depth: int = 0

    def follow(self, words: Sequence[Word]) -> None:
        """Follow a command here to the programs that it runs."""
        self.record.follow(words, self)

    def note_program(self, word: Word) -> None:
        """Record a program that the script calls."""
        if self.sure and word.known:
            self.record.programs.append(CommandSource(word.place, word.text))

    def inner(self) -> Setting:
        """The context of what a launcher or a shell starts."""
        inner = self.fork()
        inner.depth += 1
        inner.options = frozenset()
        return inner

    def fork(self) -> Setting:
        """A copy whose changes stay local: a subshell, or a branch that may not be taken."""
        return replace(
            self,
            variables=dict(self.variables),
            exported=set(self.exported),
            functions=dict(self.functions),
        )

    def join(self, *branches: Setting) -> None:
        """Continue after alternative branches; those that ended do not count."""
        alive = [branch for branch in branches if not branch.left]
        if not alive:
            self.left = branches[0].left if branches else self.left
            return
        first, *others = alive
        for other in others:
            _blur(first.variables, other.variables)
            if other.draft.folder != first.draft.folder:
                first.lost = "it depends on a condition that is not known"
            if other.draft.prefix != first.draft.prefix:
                first.draft = replace(first.draft, prefix=None)
            first.lost = first.lost or other.lost
            first.exported |= other.exported
            first.functions = {**other.functions, **first.functions}
            first.fetched = first.fetched or other.fetched
            first.options &= other.options
            first.blind = first.blind or other.blind
        self.variables, self.exported = first.variables, first.exported
        self.functions, self.arguments = first.functions, first.arguments
        self.draft, self.lost, self.fetched = first.draft, first.lost, first.fetched
        self.options, self.blind = first.options, first.blind

    def value(self, name: str) -> Value | None:
        """The value of a variable: set by the script, or from the environment; None if it is not set."""
        if name in self.variables:
            return self.variables[name]
        if self.draft.environment.get(name) is not None:
            return Word(self.draft.environment[name] or "", SourceLocation(COMMAND))
        if name in self.draft.environment:
            return Word("$" + name, SourceLocation(COMMAND), known=False)
        if name == "PWD" and not self.lost:
            return Word(str(self.draft.folder), SourceLocation(COMMAND))
        if self.record.given is not None and name in self.record.given:
            return Word(self.record.given[name], SourceLocation(COMMAND))
        return None

    def assign(self, name: str, value: Value, *, export: bool = False) -> None:
        """Set a variable; a value that has grown too large becomes unknown."""
        grown = len(value) > MOST_ITEMS if isinstance(value, tuple) else False
        if grown or (isinstance(value, Word) and len(value.text) > LONGEST_VALUE):
            value = Word("$" + name, SourceLocation(COMMAND), known=False, many=True)
        self.variables[name] = value
        if export or name in self.draft.environment:
            self.exported.add(name)

    def environment(self) -> dict[str, str | None]:
        """The environment of programs that are started here."""
        found = dict(self.draft.environment)
        for name in sorted(self.exported):
            value = self.variables.get(name)
            if isinstance(value, Word):
                found[name] = value.text if value.known else None
        return found

    def exported_at(self) -> dict[str, CommandSource]:
        """The locations at which exported variables were set."""
        values = {name: self.variables.get(name) for name in self.exported}
        return {
            name: CommandSource(value.place, value.text)
            for name, value in values.items()
            if isinstance(value, Word)
        }

    def enter(self, word: Word) -> None:
        """Change the current directory, like ``cd``."""
        self.draft = self.draft.with_script(
            entered=(*self.draft.launch_script.entered, CommandSource(word.place, word.text))
        )
        if not word.known or word.text == "-":
            self.lost = f"`cd {word.text}` is not known"
            return
        here = self.here(word.text)
        if here is None:
            self.lost = f"{word.text} is not on this machine"
        else:
            self.draft = replace(self.draft, folder=here)
            self.lost = "" if os.path.isabs(word.text) else self.lost

    def here(self, text: str) -> Path | None:
        """The directory of this machine for a directory of the job; None if there is none."""
        for path in self.candidates(text):
            if is_folder(path):
                return path
        return None

    def candidates(self, text: str) -> Iterator[Path]:
        """The possible locations of a job's path on this machine, most likely first."""
        if not os.path.isabs(text):
            yield Path(os.path.abspath(self.draft.folder / text))
            return
        for inside, outside in sorted(self.draft.mounts.items(), key=lambda m: -len(m[0])):
            inside = inside.rstrip("/")
            if text == inside or text.startswith(inside + "/"):
                base = os.path.join(self.record.root, outside)
                yield Path(os.path.abspath(base + text[len(inside) :]))
        yield Path(os.path.abspath(text))

    def label(self, path: Path) -> str:
        """A path for people: relative to the submission directory if it is inside."""
        try:
            return path.relative_to(self.record.root).as_posix()
        except ValueError:
            return str(path)

    def written(self, word: Word) -> CommandSource:
        """The absolute path of a file, which stays valid when the directory changes."""
        moved = self.draft.folder != self.record.root and not os.path.isabs(word.text)
        text = os.path.normpath(self.draft.folder / word.text) if moved else word.text
        return CommandSource(word.place, text)


def _blur(into: dict[str, Value], other: Mapping[str, Value]) -> None:
    """Forget what differs between two branches."""
    for name in into.keys() | other.keys():
        ours, theirs = into.get(name), other.get(name)
        if _texts(ours) != _texts(theirs):
            value = ours or theirs
            place = value.place if isinstance(value, Word) else SourceLocation(COMMAND)
            into[name] = Word("$" + name, place, known=False, many=True)


def _texts(value: Value | None) -> object:
    words = value if isinstance(value, tuple) else (value,)
    return [word and (word.text, word.known) for word in words], isinstance(value, tuple)
