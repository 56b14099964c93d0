"""Notes that a statement was run although a rule claims that it fails.

from mingpt.model import GPT       ->     from mingpt.model import GPT
__epochzero__.passed(__file__, 13)
return model.fit(data)             ->     return __epochzero__.passed(__file__, 20, model.fit(data))
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any, TypeVar

from epochzero.check.dryrun.child.rewrite import RUNTIME

_Node = TypeVar("_Node", bound=ast.AST)
_SIMPLE = (
    ast.AnnAssign, ast.Assert, ast.Assign, ast.AugAssign, ast.Delete, ast.Expr, ast.Import, ast.ImportFrom,
)  # fmt: skip


def with_notes(tree: ast.Module, lines: Collection[int]) -> ast.Module:
    """The module with a note after each statement at one of the lines."""
    module: ast.Module = _Notes(lines).visit(tree)
    return ast.fix_missing_locations(module)


class _Notes(ast.NodeTransformer):
    def __init__(self, lines: Collection[int]) -> None:
        self._lines = lines

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Simple statements are followed by a note; what is returned is passed through one.

        Heads of loops and tests stay as they are: how loops are shortened depends on them.
        """
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [n for inner in body for n in self._noted(inner)])
        return node

    def _noted(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return [node]
        if isinstance(node, _SIMPLE) and (line := self._line(node)):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            return [node] if is_text else [node, _at(ast.Expr(_note(line)), node)]
        if isinstance(node, ast.Return) and node.value and (line := self._line(node)):
            node.value = _at(_note(line, node.value), node.value)
        return [node]

    def _line(self, node: Any) -> int:
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return next((line for line in lines if line in self._lines), 0)


def _note(line: int, *value: ast.expr) -> ast.expr:
    passed = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "passed", ast.Load())
    return ast.Call(passed, [ast.Name("__file__", ast.Load()), ast.Constant(line), *value], [])


def _at(node: _Node, like: ast.AST) -> _Node:
    return ast.copy_location(node, like)
