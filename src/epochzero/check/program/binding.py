"""Which names belong to a function or module: bound there, they are looked up nowhere else."""

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
    """The names that statements of a function or module bind; parameters are not among them.

    Args:
        module: in which the function stands, or which it is.
        node: of the function or module.

    Returns:
        None where names may come from elsewhere: all those of another module, or some that are made
        while it runs.
    """
    found: set[str] = set()
    for one in _within(node.body):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, _INNER):
            found.add(one.name)
        elif isinstance(one, ast.alias):
            found.add(one.asname or one.name.partition(".")[0])
    for one in _elsewhere(module):
        if node in code_of(module).around(one):
            if isinstance(one, ast.Name):
                return None
            found.difference_update(one.names)
    return None if "*" in found else frozenset(found)


@lru_cache(maxsize=4096)
def _elsewhere(module: Module) -> list[ast.Global | ast.Nonlocal | ast.Name]:
    """The nodes by which a name may be bound, or be found, in another scope than its own."""
    code = code_of(module)
    is_dynamic = not _DYNAMIC.isdisjoint(code.names)
    made = [one for one in code.of(ast.Name) if one.id in _DYNAMIC] if is_dynamic else []
    return [*code.of(ast.Global), *code.of(ast.Nonlocal), *made]


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
