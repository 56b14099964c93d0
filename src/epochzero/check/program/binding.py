"""Which names belong to a function or module: bound there, they are looked up nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["own_names"]

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DYNAMIC = frozenset({"exec", "globals", "locals", "vars", "setattr"})


@lru_cache(maxsize=8192)
def own_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> frozenset[str] | None:
    """The names that statements of a function or module bind; parameters are not among them.

    Returns:
        None where names may come from elsewhere: all those of another module, or some that are made
        while it runs.
    """
    found: set[str] = set()
    others: set[str] = set()
    for one in _within(node.body):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, _INNER):
            found.add(one.name)
        elif isinstance(one, ast.alias):
            found.add(one.asname or one.name.partition(".")[0])
    for one in ast.walk(node):
        if isinstance(one, ast.Global | ast.Nonlocal):
            others.update(one.names)
        elif isinstance(one, ast.Name) and one.id in _DYNAMIC:
            return None
    return None if "*" in found else frozenset(found - others)


def _within(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, those of scopes within them left out."""
    todo: list[ast.AST] = list(body)
    while todo:
        one = todo.pop()
        yield one
        if isinstance(one, _INNER):
            todo += one.decorator_list
        elif not isinstance(one, (ast.Lambda, *_COMPREHENSIONS)):
            todo += ast.iter_child_nodes(one)
