"""Reachability: which code the job reaches, and in which circumstances.

Some rules read the syntax tree, which does not show whether its code runs. A statement runs if an event happened in its
block.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

from epochzero.check.findings import Severity, SourceLocation
from epochzero.check.program.events import Situation
from epochzero.check.program.model import Module, Program
from epochzero.check.program.version_guards import (
    fallback_lines,
    names_of_versions,
    versioned_lines,
)

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_HOOKS = {"forward"}
"""Methods that a library calls by name."""
_Span = tuple[tuple[int, int], tuple[int, int]]
"""The first and the last line and column."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Statements that run in sequence once the first does.

    Attributes:
        first, last: lines.
        handled: exceptions that a ``try`` around them in the same function catches.
        body: whether it is the module level, which runs when the module is imported.
        function: the function around them; None at module level.
        whole: whether they are the body of that function.
    """

    first: int
    last: int
    handled: frozenset[str]
    body: bool
    function: _Function | None = None
    whole: bool = False


_WHOLE = _Block(1, 1 << 60, frozenset(), True)
"""The module itself."""


class Reach:
    """The circumstances of the nodes of a program."""

    def __init__(self, program: Program) -> None:
        self._events: dict[str, list[Situation]] = {}
        for at in _situations(program):
            self._events.setdefault(at.place.path, []).append(at)
        for events in self._events.values():
            events.sort(key=lambda at: at.place.line)
        self._lines = {
            path: [at.place.line for at in events] for path, events in self._events.items()
        }
        self._blocks: dict[str, list[_Block]] = {}  # innermost, by line
        self._conditional: dict[str, list[_Span]] = {}
        self._tested: dict[str, list[tuple[int, int]]] = {}
        self._fallbacks: dict[str, list[tuple[int, int]]] = {}
        self._modules = program.by_path
        self._entered = program.entered

    @staticmethod
    @lru_cache(maxsize=1)  # All rules query the same program in succession.
    def of(program: Program) -> Reach:
        """The reach of a program."""
        return Reach(program)

    def at(self, module: Module, node: ast.AST) -> Situation | None:
        """The circumstances of a node; None if the job is not known to reach it."""
        block = self._block(module, getattr(node, "lineno", 1))
        place = module.place(node)
        line = place.line
        on_line = self._within(module.path, line, line)
        # To compare all events of a long module for each of its nodes would take work by the square of its length.
        best = next((at for at in on_line if at.certain), None)
        if best is None:
            events = self._within(module.path, block.first, block.last)
            if not events:
                return Situation(place, handled=block.handled) if block.body else None
            best = min(events, key=lambda at: (not at.certain, abs(at.place.line - line)))
        handled = frozenset[str]().union(*(at.handled for at in on_line)) | block.handled
        certain = best.certain or block.body
        return replace(best, place=place, handled=handled, certain=certain)

    def may(self, module: Module, node: ast.AST) -> Situation | None:
        """The circumstances of a node that the job reaches, or may reach since other code mentions its function."""
        if (at := self.at(module, node)) is not None:
            return at
        block = self._block(module, getattr(node, "lineno", 1))
        function, certain = block.function, False
        if function is not None:
            entered = self._entered.get((module.path, function.lineno))
            if entered is None and function.name not in self._mentioned:
                return None
            certain = block.whole and bool(entered)
        return Situation(module.place(node), certain=certain, handled=block.handled)

    @cached_property
    def _mentioned(self) -> set[str]:
        """The names that reachable code mentions: modules, and functions that are mentioned."""
        by_function: dict[str, set[str]] = {}
        roots: set[str] = set()
        for module in self._modules.values():
            if module.tree is not None:
                _collect(module.tree, roots, by_function)
        waiting, seen = {*roots, *_HOOKS}, set[str]()
        waiting |= {name for name in by_function if name.startswith("__")}
        while waiting:
            name = waiting.pop()
            seen.add(name)
            waiting |= by_function.get(name, set()) - seen
        return seen

    def severity(self, at: Situation) -> Severity:
        """The severity of a failure that happens whenever the job reaches this point.

        An error if the job certainly reaches it, or if no condition precedes it: loops over data and epochs are assumed to run at
        least once.
        """
        if at.certain or not any(
            self._is_conditional(location) for location in (at.place, *at.via)
        ):
            return "error"
        return "warning"

    def _is_conditional(self, place: SourceLocation) -> bool:
        module = self._modules.get(place.path)
        if module is None:
            return True
        if place.path not in self._conditional:
            self._conditional[place.path] = list(_conditional(module))
        here = (place.line, place.column)
        return any(first <= here <= last for first, last in self._conditional[place.path])

    def is_versioned(self, at: Situation) -> bool:
        """Whether it, or a call that leads to it, runs only for some versions of a library."""
        return self.is_behind_test(at) or self._is_among(at, self._fallbacks, fallback_lines)

    def is_behind_test(self, at: Situation) -> bool:
        """Whether a condition on a version, or on an attribute of a library, decides whether it runs."""
        return self._is_among(
            at, self._tested, lambda module: versioned_lines(module, self._names_of_versions)
        )

    def _is_among(
        self,
        at: Situation,
        known: dict[str, list[tuple[int, int]]],
        lines: Callable[[Module], Iterator[tuple[int, int]]],
    ) -> bool:
        """Whether its location, or one that leads to it, is in such lines."""
        for place in (at.place, *at.via):
            module = self._modules.get(place.path)
            if module is None or module.tree is None:
                continue
            if module.path not in known:
                known[module.path] = list(lines(module))
            if any(first <= place.line <= last for first, last in known[module.path]):
                return True
        return False

    @cached_property
    def _names_of_versions(self) -> frozenset[str]:
        return names_of_versions(self._modules.values())

    def _within(self, path: str, first: int, last: int) -> Sequence[Situation]:
        lines = self._lines.get(path, [])
        return self._events.get(path, [])[bisect_left(lines, first) : bisect_right(lines, last)]

    def _block(self, module: Module, line: int) -> _Block:
        """The innermost block around a line."""
        if module.path not in self._blocks:
            self._blocks[module.path] = _by_line(module)
        blocks = self._blocks[module.path]
        return blocks[line] if line < len(blocks) else _WHOLE


def _situations(program: Program) -> Iterator[Situation]:
    """The circumstances of all events, and of the calls that lead to them."""
    seen: set[tuple[SourceLocation, bool]] = set()
    for event in program.events:
        at = event.at
        yield at
        for depth, place in enumerate(at.via):
            if (place, at.certain) not in seen:
                seen.add((place, at.certain))
                yield Situation(
                    place, at.via[:depth], at.phase, at.certain, frozenset(), "", at.loop
                )


def _by_line(module: Module) -> list[_Block]:
    """The innermost block around each line."""
    found = [_WHOLE] * (module.text.count("\n") + 2)
    for block in _blocks(module):
        last = min(block.last, len(found) - 1)
        found[block.first : last + 1] = [block] * (last + 1 - block.first)
    return found


def _blocks(module: Module) -> Iterator[_Block]:
    """The blocks of a module, outer ones before inner ones."""
    if module.tree is None:
        return
    runs = module.name == "__main__"
    todo: list[tuple[Sequence[ast.stmt], frozenset[str], bool, bool, _Function | None]] = [
        (module.tree.body, frozenset(), True, True, None)
    ]
    while todo:
        statements, handled, body, begins, function = todo.pop(0)
        if begins and statements:
            first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
            whole = function is not None and statements is function.body
            yield _Block(first, last, handled, body, function, whole)
        for statement in statements:
            inside = (
                statement
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
                else function
            )
            todo += [(*inner, inside) for inner in _inner(statement, handled, body, runs)]


def _conditional(module: Module) -> Iterator[_Span]:
    """Code that runs only on a condition, once its function runs."""
    for node in ast.walk(module.tree) if module.tree is not None else ():
        if isinstance(node, ast.If) and not _is_main(node.test):
            yield (node.body[0].lineno, 0), _end(node)
        elif isinstance(node, ast.IfExp):
            yield (node.lineno, 0), _end(node)
        elif isinstance(node, ast.BoolOp):
            second = node.values[1]
            yield (second.lineno, second.col_offset + 1), _end(node)
        elif isinstance(node, ast.ExceptHandler | ast.match_case):
            yield (node.body[0].lineno, 0), _end(node.body[-1])


def _end(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _inner(
    statement: ast.stmt, handled: frozenset[str], body: bool, runs: bool
) -> Iterator[tuple[Sequence[ast.stmt], frozenset[str], bool, bool]]:
    """The bodies of a statement: those of classes, ``with`` and loops run with the statement itself.

    A loop is assumed to run at least once.
    """
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield statement.body, frozenset(), False, True
        case ast.ClassDef() | ast.With() | ast.AsyncWith():
            yield statement.body, handled, body, False
        case ast.For() | ast.AsyncFor() | ast.While():
            yield statement.body, handled, body, False
            yield statement.orelse, handled, False, True
        case ast.Try() | ast.TryStar():
            yield statement.body, handled | _caught(statement), body, True
            for rest in (statement.orelse, statement.finalbody):
                yield rest, handled, body, False
            for handler in statement.handlers:
                yield handler.body, handled, False, True
        case ast.If() if body and runs and _is_main(statement.test):
            yield statement.body, handled, body, False
        case ast.Match():
            for case_ in statement.cases:
                yield case_.body, handled, False, True
        case _:
            for name in ("body", "orelse"):
                rest = getattr(statement, name, [])
                yield rest, handled, False, True


def _caught(statement: ast.Try | ast.TryStar) -> frozenset[str]:
    names: set[str] = set()
    for handler in statement.handlers:
        if any(isinstance(node, ast.Raise) for node in ast.walk(handler)):
            continue
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names |= {"BaseException" if kind is None else ast.unparse(kind) for kind in kinds}
    return frozenset(names)


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


def _is_main(test: ast.expr) -> bool:
    return "__name__" in {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
