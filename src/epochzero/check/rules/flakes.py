"""What pyflakes says of the job's modules, as far as the job comes there.

pyflakes knows Python's scopes; rules use those of its messages that surely end in an exception. It
reads whole files, also functions that the job never calls: there nothing is found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from pyflakes import checker

from epochzero.check.findings import Finding, Place, Severity
from epochzero.check.program.events import Situation
from epochzero.check.program.model import Module, Program

__all__ = ["Flake", "flakes"]

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Body: TypeAlias = list[ast.stmt]

# Statements whose first body runs when they do. Of loops one round is taken for granted.
_THROUGH = (
    ast.ClassDef, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar,
)  # fmt: skip
# Functions that a library calls by their name.
_HOOKS = {"forward"}


@dataclass(frozen=True, slots=True)
class Flake:
    """A message of pyflakes at a place to which the job comes.

    Attributes:
        kind: class of the message, such as ``UndefinedName``.
        values: that it names.
        module: in which it is.
        column: from 0, as ``ast`` counts.
        place: where.
        severity: ``error`` where the job surely comes by, else ``warning``.
        at: circumstances of an event nearby.
    """

    kind: str
    values: tuple[object, ...]
    module: Module
    column: int
    place: Place
    severity: Severity
    at: Situation

    def finding(
        self, rule: str, category: str, message: str, consequence: str, fix: str
    ) -> Finding:
        """A finding about it."""
        return Finding(
            rule, self.severity, category, self.at.phase, self.place,
            message, consequence, fix, self.at.via,
        )  # fmt: skip


@lru_cache(maxsize=1)  # Several rules ask for the same program, one after the other.
def flakes(program: Program) -> tuple[Flake, ...]:
    """The messages of pyflakes about code that the job reaches."""
    events: dict[str, list[Situation]] = {}
    for event in program.events:
        events.setdefault(event.at.place.path, []).append(event.at)
    modules = [module for module in program.modules.values() if module.tree is not None]
    mentioned = _mentioned([module.tree for module in modules if module.tree is not None])
    return tuple(
        flake
        for module in modules
        for flake in _of_module(module, events.get(module.path, []), mentioned)
    )


def _of_module(module: Module, events: list[Situation], mentioned: set[str]) -> Iterator[Flake]:
    assert module.tree is not None
    try:
        found = checker.Checker(module.tree, module.path).messages
    except RecursionError:
        return
    for message in found:
        gates = list(_gates(module.tree.body, message.lineno, module.name == "__main__"))
        severity = _severity(gates, events, mentioned)
        if severity is not None:
            yield Flake(
                type(message).__name__,
                tuple(message.message_args),
                module,
                message.col,
                Place(
                    module.path,
                    message.lineno,
                    message.col + 1,
                    module.place(message.lineno).code,
                ),
                severity,
                _nearest(gates, events, module),
            )


# -- Does the job come there? ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Gate:
    """A body that does not run just because what is around it does.

    Attributes:
        function: the function that it is the body of; None for a branch.
        body: its statements.
        handled: whether an exception in it is caught.
    """

    function: _Function | None
    body: _Body
    handled: bool = False


def _gates(body: _Body, line: int, entry: bool) -> Iterator[_Gate]:
    """The gates around a line, the outermost first."""
    for statement in body:
        if not _within([statement], line):
            continue
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


def _bodies(statement: ast.stmt) -> Iterator[_Body]:
    for field in ("body", "orelse", "finalbody"):
        if value := getattr(statement, field, None):
            yield value
    for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield branch.body


def _within(body: _Body, line: int) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _catches(statement: ast.stmt) -> bool:
    """Whether a ``try`` catches whatever is wrong in its body, and goes on."""
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
    gates: Iterable[_Gate], events: list[Situation], mentioned: set[str]
) -> Severity | None:
    """How sure it is that the job comes through the gates; None when nothing says that it does."""
    severity: Severity = "error"
    for gate in gates:
        inside = [at for at in events if _within(gate.body, at.place.line)]
        if gate.handled:
            return None
        if gate.function is not None and not inside and not _called(gate.function, mentioned):
            return None
        if inside or gate.function is None:
            severity = severity if any(at.certain for at in inside) else "warning"
    return severity


def _called(function: _Function, mentioned: set[str]) -> bool:
    name = function.name
    return name in mentioned or name in _HOOKS or (name.startswith("__") and name.endswith("__"))


def _nearest(gates: list[_Gate], events: list[Situation], module: Module) -> Situation:
    """An event in the innermost gate that has one, else at the module's level."""
    for gate in reversed(gates):
        for at in events:
            if _within(gate.body, at.place.line):
                return at
    outside = [at for at in events if not at.function]
    return outside[0] if outside else Situation(module.place(1))


def _mentioned(trees: Iterable[ast.Module]) -> set[str]:
    """The names that code mentions which itself runs: modules, and functions that are mentioned."""
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
    """Names in a piece of code into ``names``, those in its functions by the function's name."""
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
