"""The loops of the job's own code around an event, including those of its callers."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from epochzero.check.findings import SourceLocation
from epochzero.check.program.events import Situation
from epochzero.check.program.model import Module, Program
from epochzero.check.program.syntax import Code, Function, code_of
from epochzero.check.program.values import Instance, Value

_WRAPPERS = frozenset(["builtins.enumerate", "builtins.iter", "tqdm.tqdm", "tqdm.auto.tqdm",
                       "tqdm.notebook.tqdm", "rich.progress.track", "itertools.islice"])  # fmt: skip
_Node: TypeAlias = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True)
class ProgramLoop:
    """A loop that the job runs.

    Attributes:
        module: its module.
        node: its syntax node.
        via: the calls and imports that lead to it, the entry point first.
    """

    module: Module
    node: _Node
    via: tuple[SourceLocation, ...]

    def step_to(self, at: Situation) -> SourceLocation | None:
        """The location in the loop's own body that leads to an event; None if the event is outside."""
        places = (*at.via, at.place)
        here = places[len(self.via)] if len(places) > len(self.via) else None
        if here is None or places[: len(self.via)] != self.via:
            return None
        return here if here.path == self.module.path and _has(self.node, here) else None


def loops_around(program: Program, at: Situation) -> tuple[ProgramLoop, ...]:
    """The loops around an event, the outermost first."""
    found: list[ProgramLoop] = []
    for depth, place in enumerate((*at.via, at.place)):
        module = program.by_path.get(place.path)
        if module is not None:
            found += [ProgramLoop(module, node, at.via[:depth]) for node in _loops(module, place)]
    return tuple(found)


@lru_cache(maxsize=4096)
def _loops(module: Module, place: SourceLocation) -> tuple[_Node, ...]:
    """The loops around a location in its own function, the outermost first."""
    code = code_of(module)
    scope = _scope(code, place)
    loops: list[_Node] = [*code.of(ast.For), *code.of(ast.AsyncFor), *code.of(ast.While)]
    around = [loop for loop in loops if _has(loop, place) and code.scope(loop) is scope]
    return tuple(sorted(around, key=lambda node: (node.lineno, node.col_offset)))


def _scope(code: Code, place: SourceLocation) -> ast.AST | None:
    """The innermost function around a location, or the module."""
    functions: list[Function] = [*code.of(ast.FunctionDef), *code.of(ast.AsyncFunctionDef)]
    around = [
        function
        for function in functions
        if function.body[0].lineno <= place.line <= (function.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=code.module.tree)


def _has(loop: _Node, place: SourceLocation) -> bool:
    """Whether a location is in the body of a loop, not in its iterable or its ``else``."""
    first, last = loop.body[0], loop.body[-1]
    begin = (first.lineno, first.col_offset + 1)
    return begin <= (place.line, place.column) <= (last.end_lineno or 0, last.end_col_offset or 0)


def unwrapped(value: Value | None) -> Value | None:
    """The iterable of a loop, without wrappers that count or show its iterations."""
    while isinstance(value, Instance) and value.made_by in _WRAPPERS and value.arguments:
        value = value.arguments[0]
    return value
