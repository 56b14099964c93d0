"""Messages of ruff about the job's modules, for the code that the job reaches.

ruff knows Python's scopes; rules use those of its messages that certainly lead to an exception.
It reads whole files, including functions that the job never calls; those are ignored.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from epochzero.check.program.events import Situation
from epochzero.check.rule import Claim, JobView, Module, Program, Severity, SourceLocation, Target
from epochzero.check.rules.ruff import Asked, Message

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Body: TypeAlias = list[ast.stmt]

# Statements whose first body runs when they do. One iteration of each loop is assumed.
_THROUGH = (
    ast.ClassDef, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar,
)  # fmt: skip
# Functions that a library calls by name.
_HOOKS = {"forward"}


@dataclass(frozen=True, slots=True)
class Flake:
    """A message of ruff about code that the job reaches.

    Attributes:
        code: code of the ruff rule, such as ``F821``.
        values: names in the message.
        module: module of the code.
        column: column from 0, as in ``ast``.
        place: location.
        severity: ``error`` if the job certainly reaches it, otherwise ``warning``.
        at: circumstances of a nearby event.
    """

    code: str
    values: tuple[str, ...]
    module: Module
    column: int
    place: SourceLocation
    severity: Severity
    at: Situation

    def claim(self, message: str, consequence: str, fix: str) -> Claim:
        """A claim about the message."""
        return Claim(
            severity=self.severity, phase=self.at.phase, place=self.place,
            message=message, consequence=consequence, fix=fix, via=self.at.via,
        )  # fmt: skip


@contextmanager
def reading(view: JobView) -> Iterator[None]:
    """Run ruff on the program in another process, for later calls of `flakes`."""
    with _asked(view.program, view.target.python):
        yield


@lru_cache(maxsize=1)
def _asked(program: Program, python: tuple[int, ...] | None) -> Asked:
    return Asked([module for module in program.modules.values() if module.tree is not None], python)


@lru_cache(maxsize=1)  # Several rules query the same program in succession.
def _read(program: Program, python: tuple[int, ...] | None) -> _Reading:
    """The messages of ruff about all modules, and what decides whether the job reaches them."""
    events: dict[str, list[Situation]] = {}
    for event in program.events:
        events.setdefault(event.at.place.path, []).append(event.at)
    return _Reading(
        tuple(_asked(program, python).messages()),
        {path: _Events(found) for path, found in events.items()},
        tuple(module.tree for module in program.modules.values() if module.tree is not None),
        program.entered,
    )


def flakes(program: Program, target: Target, codes: Container[str]) -> Iterator[Flake]:
    """The messages with these codes about code that the job reaches.

    Raises:
        CannotTell: ruff is not available.
    """
    reading = _read(program, target.python)
    for message in reading.messages:
        if message.code in codes:
            events = reading.events.get(message.module.path, _Events([]))
            yield from _flake(message, events, reading)


def _flake(message: Message, events: _Events, reading: _Reading) -> Iterator[Flake]:
    module, line, column = message.module, message.line, message.column
    assert module.tree is not None
    gates = list(_gates(module.tree.body, line, module.name == "__main__"))
    severity = _severity(gates, module, events, reading)
    if severity is not None:
        yield Flake(
            message.code,
            message.values,
            module,
            column,
            SourceLocation(module.path, line, column + 1, module.place(line).code),
            severity,
            _nearest(gates, events, module),
        )


class _Events:
    """The circumstances of the events in a module, by line."""

    def __init__(self, events: list[Situation]) -> None:
        self._events = sorted(events, key=lambda at: at.place.line)
        self._lines = [at.place.line for at in self._events]

    def within(self, body: _Body) -> list[Situation]:
        """The events in the lines of a body."""
        last = body[-1].end_lineno or body[-1].lineno
        start, end = bisect_left(self._lines, body[0].lineno), bisect_right(self._lines, last)
        return self._events[start:end]

    def outside(self) -> Situation | None:
        """The first event at module level."""
        return next((at for at in self._events if not at.function), None)


@dataclass(frozen=True)
class _Reading:
    """What is known about a program.

    Attributes:
        messages: messages of ruff.
        events: events by path.
        trees: syntax trees of the modules.
        entered: functions that run, see `Program`.
    """

    messages: tuple[Message, ...]
    events: Mapping[str, _Events]
    trees: tuple[ast.Module, ...]
    entered: Mapping[tuple[str, int], bool]

    @cached_property
    def mentioned(self) -> set[str]:
        """Names that reachable code mentions; most programs never need them."""
        return _mentioned(self.trees)


# -- Does the job come there? ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Gate:
    """A body that does not necessarily run when the surrounding code runs.

    Attributes:
        function: function whose body it is; None for a branch.
        body: its statements.
        handled: whether an exception in it is caught.
    """

    function: _Function | None
    body: _Body
    handled: bool = False


def _gates(body: _Body, line: int, entry: bool) -> Iterator[_Gate]:
    """The gates around a line, the outermost first."""
    for statement in _at(body, line):
        for number, inner in enumerate(_bodies(statement)):
            if _within(inner, line):
                function = (
                    statement
                    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
                    else None
                )
                caught = number == 0 and _catches(statement)
                through = number == 0 and (
                    isinstance(statement, _THROUGH) or (entry and _is_main(statement))
                )
                if caught or not through:
                    yield _Gate(function, inner, caught)
                yield from _gates(inner, line, entry)


def _at(body: _Body, line: int) -> _Body:
    """The statements of a body that contain a line; found by bisection, since a body may be long."""
    end = bisect_right(body, line, key=lambda statement: statement.lineno)
    start = end
    while start and _within([body[start - 1]], line):
        start -= 1
    return body[start:end]


def _bodies(statement: ast.stmt) -> Iterator[_Body]:
    for field in ("body", "orelse", "finalbody"):
        if value := getattr(statement, field, None):
            yield value
    for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield branch.body


def _within(body: _Body, line: int) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _catches(statement: ast.stmt) -> bool:
    """Whether a ``try`` catches every error in its body and continues."""
    return isinstance(statement, ast.Try | ast.TryStar) and any(
        (handler.type is None or ast.unparse(handler.type) in {"Exception", "BaseException"})
        and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        for handler in statement.handlers
    )


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) in {
        "__name__ == '__main__'",
        "'__main__' == __name__",
    }


def _severity(
    gates: Iterable[_Gate], module: Module, events: _Events, reading: _Reading
) -> Severity | None:
    """How certain it is that the job passes the gates; None if nothing indicates it."""
    severity: Severity = "error"
    for gate in gates:
        inside = events.within(gate.body)
        certain = any(at.certain for at in inside)
        if gate.handled:
            return None
        if gate.function is not None:
            entered = reading.entered.get((module.path, gate.function.lineno))
            if entered is None and not inside and not _called(gate.function, reading):
                return None
            certain = certain or bool(entered)
        if not certain:
            severity = "warning"
    return severity


def _called(function: _Function, reading: _Reading) -> bool:
    name = function.name
    by_python = name in _HOOKS or (name.startswith("__") and name.endswith("__"))
    return by_python or name in reading.mentioned


def _nearest(gates: list[_Gate], events: _Events, module: Module) -> Situation:
    """An event in the innermost gate that has one, else at module level."""
    for gate in reversed(gates):
        if inside := events.within(gate.body):
            return inside[0]
    return events.outside() or Situation(module.place(1))


def _mentioned(trees: Iterable[ast.Module]) -> set[str]:
    """The names that reachable code mentions: modules, and functions that are mentioned."""
    by_function: dict[str, set[str]] = {}
    roots: set[str] = set()
    for tree in trees:
        _collect(tree, roots, by_function)
    waiting, seen = {*roots, *_HOOKS}, set[str]()
    waiting |= {name for name in by_function if name.startswith("__")}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= by_function.get(name, set()) - seen
    return seen


def _collect(tree: ast.AST, names: set[str], by_function: dict[str, set[str]]) -> None:
    """Collect the names of a piece of code in ``names``, those of its functions by function name."""
    stack = [(tree, names)]
    while stack:
        node, into = stack.pop()
        if isinstance(node, ast.Name):
            into.add(node.id)
        elif isinstance(node, ast.Attribute):
            into.add(node.attr)
        own = into
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = by_function.setdefault(node.name, set())
        stack += [(child, own) for child in ast.iter_child_nodes(node)]
