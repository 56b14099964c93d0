"""The names that a function or module binds itself, and that are therefore never looked up elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from epochzero.check.program.model import Module
from epochzero.check.program.syntax import code_of

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DYNAMIC = frozenset({"exec", "globals", "locals", "vars", "setattr"})


@lru_cache(maxsize=8192)
def own_names(
    module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
) -> frozenset[str] | None:
    """Return the names that the statements of a function or module bind, without its parameters.

    Args:
        module: the module that contains the node.
        node: a function or the module itself.

    Returns:
        None if names may come from elsewhere: a star import, or names that are bound at run time.
    """
    found: set[str] = set()
    for inner in _within(node.body):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        elif isinstance(inner, _INNER):
            found.add(inner.name)
        elif isinstance(inner, ast.alias):
            found.add(inner.asname or inner.name.partition(".")[0])
    for inner in _elsewhere(module):
        if node in code_of(module).around(inner):
            if isinstance(inner, ast.Name):
                return None
            found.difference_update(inner.names)
    return None if "*" in found else frozenset(found)


@lru_cache(maxsize=4096)
def _elsewhere(module: Module) -> list[ast.Global | ast.Nonlocal | ast.Name]:
    """The nodes that may bind or look up a name in another scope than their own."""
    code = code_of(module)
    is_dynamic = not _DYNAMIC.isdisjoint(code.names)
    made = [name for name in code.of(ast.Name) if name.id in _DYNAMIC] if is_dynamic else []
    return [*code.of(ast.Global), *code.of(ast.Nonlocal), *made]


def _within(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without those of nested scopes."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _INNER):
            todo += node.decorator_list
        elif not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            todo += ast.iter_child_nodes(node)
