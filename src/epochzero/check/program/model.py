"""The program of a job: its own modules, and its events."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.launch.model import Job
from epochzero.check.program.events import CertainError, Event, LibraryCall, LibraryImport, Lookup
from epochzero.check.program.parsers.model import ParsedCommand
from epochzero.check.program.values import Value


@dataclass(frozen=True, eq=False)
class Module:
    """A source file of the job.

    Attributes:
        name: dotted name under which the job imports it; ``__main__`` for the entry point.
        path: relative to the job's directory, with ``/``; absolute if it is outside.
        file: absolute path.
        text: source.
        tree: syntax tree; None if the source does not parse for the target's Python.
        error: the syntax error.
    """

    name: str
    path: str
    file: Path
    text: str
    tree: ast.Module | None
    error: SyntaxError | None = None

    def place(self, node: ast.AST | int) -> SourceLocation:
        """The location of a node or line, with its source line."""
        if (found := self._places.get(node)) is None:
            found = self._places[node] = self._place(node)
        return found

    def _place(self, node: ast.AST | int) -> SourceLocation:
        line = node if isinstance(node, int) else getattr(node, "lineno", 0)
        column = 0 if isinstance(node, int) else getattr(node, "col_offset", -1) + 1
        lines = self.lines
        code = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return SourceLocation(self.path, line, column, code)

    @cached_property
    def _places(self) -> dict[ast.AST | int, SourceLocation]:
        return {}

    @cached_property
    def lines(self) -> list[str]:
        """The lines as Python counts them; `str.splitlines` splits at more characters."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@dataclass(frozen=True, eq=False)
class Program:
    """What is known of the job's program without running it.

    Attributes:
        job: the job.
        modules: the job's own modules that the entry point reaches, by dotted name.
        events: what the program does, in order.
        options: the parsed arguments of the command line, by destination, if the script's parser is known.
        unknowns: what could not be followed, and why.
        parsed: the command line by each parser that reads it, in order.
        entered: paths and lines of the functions of the job that run, and whether they certainly do.
        before: the program that the same submission runs before; None for its first.
    """

    job: Job
    modules: Mapping[str, Module]
    events: Sequence[Event]
    options: Mapping[str, Value] = field(default_factory=dict)
    unknowns: tuple[Unknown, ...] = ()
    parsed: tuple[ParsedCommand, ...] = ()
    entered: Mapping[tuple[str, int], bool] = field(default_factory=dict)
    before: Program | None = None

    @property
    def earlier(self) -> Iterator[Program]:
        """The programs that the same submission runs before, the last first."""
        if self.before is not None:
            yield self.before
            yield from self.before.earlier

    @cached_property
    def by_path(self) -> Mapping[str, Module]:
        """The modules by their paths."""
        return {module.path: module for module in self.modules.values()}

    @cached_property
    def calls(self) -> tuple[LibraryCall, ...]:
        """The calls among the events."""
        return tuple(event for event in self.events if isinstance(event, LibraryCall))

    @cached_property
    def imports(self) -> tuple[LibraryImport, ...]:
        """The imports among the events."""
        return tuple(event for event in self.events if isinstance(event, LibraryImport))

    @cached_property
    def lookups(self) -> tuple[Lookup, ...]:
        """The lookups among the events."""
        return tuple(event for event in self.events if isinstance(event, Lookup))

    @cached_property
    def failures(self) -> tuple[CertainError, ...]:
        """The events that certainly raise."""
        return tuple(event for event in self.events if isinstance(event, CertainError))
