"""Conditions, as written, that only one process of many meets."""

from __future__ import annotations

import ast

_RANKS = frozenset(
    ["rank", "global_rank", "local_rank", "get_rank", "get_local_rank", "world_rank"]
)
_MAIN = frozenset(["is_main_process", "is_master", "is_rank_zero", "is_rank0", "is_main"])


def is_first_rank(test: ast.expr) -> bool:
    """Whether the first process certainly meets a condition, and others do not.

    ``rank == 0``, ``not rank``, ``is_main_process()``, ``local_rank in (-1, 0)``, and each of them after ``or``.
    """
    match test:
        case ast.Compare(left, [ast.Eq()], [ast.Constant(value=0)]):
            return _is_rank(left)
        case ast.Compare(left, [ast.In()], [ast.Tuple(items) | ast.List(items) | ast.Set(items)]):
            first = any(isinstance(item, ast.Constant) and item.value == 0 for item in items)
            return first and _is_rank(left)
        case ast.UnaryOp(ast.Not(), operand):
            return _is_rank(operand)
        case ast.BoolOp(ast.Or(), values):
            return any(is_first_rank(value) for value in values)
    return _last_name(test) in _MAIN


def _is_rank(node: ast.expr) -> bool:
    """Whether an expression is the rank of this process: ``rank``, ``dist.get_rank()``."""
    return _last_name(node).lower() in _RANKS


def _last_name(node: ast.expr) -> str:
    """The name ``c`` in ``a.b.c``, ``c()`` and ``a['c']``, also within ``int()``."""
    match node:
        case ast.Call(ast.Name("int"), [inner]):
            return _last_name(inner)
        case ast.Call(func):
            return _last_name(func)
        case ast.Attribute(attr=name) | ast.Name(name):
            return name
        case ast.Subscript(slice=ast.Constant(str() as name)):
            return name
    return ""
