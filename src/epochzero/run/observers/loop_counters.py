"""Which variables count the iterations of the loops around a line: ``step`` in ``for step, batch in ...``."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def counters_at(file: str, line: int) -> tuple[str, ...]:
    """Names of the counters of all loops around a line within its function, the outermost first.

    A counter is the target of a for loop, or what a loop adds to by ``+=``.
    """
    found: list[str] = []
    for loop in _loops(file):
        if loop.lineno <= line <= (loop.end_lineno or loop.lineno):
            found.extend(name for name in _counted(loop) if name not in found)
    return tuple(found)


@lru_cache(maxsize=64)
def _loops(file: str) -> tuple[ast.For | ast.While, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While))


def _counted(loop: ast.For | ast.While) -> Iterator[str]:
    if isinstance(loop, ast.For):
        yield from (node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name))
    for node in _own(loop):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add)
            and isinstance(node.target, ast.Name)
        ):
            yield node.target.id


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a node, without the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Function):
            yield child
            yield from _own(child)
