"""Conditions over partly known values: short expressions that are interpreted, never evaluated by Python."""

import ast
from collections.abc import Mapping
from functools import lru_cache

from epochzero.check.program.operators import ARITHMETIC, COMPARE

_LARGEST = 1e15


class _UnknownError(Exception):
    """A value that is needed is not known."""


def holds(condition: str, values: Mapping[str, object]) -> bool | None:
    """Whether a condition is true; None if the known values do not determine it.

    Args:
        condition: comparisons, ``and``, ``or``, ``not``, ``+ - * / // %`` of names and literals.
        values: the known values, by name.

    >>> holds("width % heads != 0", {"width": 500, "heads": 8})
    True
    >>> holds("width % heads != 0", {"width": 500}) is None
    True
    """
    try:
        return _truth(_parsed(condition), values)
    except (_UnknownError, TypeError, ValueError, ArithmeticError):
        return None


@lru_cache(maxsize=1024)
def _parsed(condition: str) -> ast.expr:
    return ast.parse(condition, mode="eval").body


def _value(node: ast.expr, values: Mapping[str, object]) -> object:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name) if name in values:
            return values[name]
        case ast.Tuple(items):
            return tuple(_value(item, values) for item in items)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.BoolOp():
            return _chosen(node, values)
        case ast.Compare():
            return _compared(node, values)
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
            return _counted(type(op), _value(left, values), _value(right, values))
    raise _UnknownError


def _truth(node: ast.expr, values: Mapping[str, object]) -> bool:
    """Whether an expression is true; one part may decide where another is not known."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _truth(node.operand, values)
    if not isinstance(node, ast.BoolOp):
        return bool(_value(node, values))
    decides = isinstance(node.op, ast.Or)
    unknown = False
    for part in node.values:
        try:
            if _truth(part, values) is decides:
                return decides
        except (_UnknownError, TypeError, ValueError, ArithmeticError):
            unknown = True
    if unknown:
        raise _UnknownError
    return not decides


def _chosen(node: ast.BoolOp, values: Mapping[str, object]) -> object:
    """``a or b`` as a value; all operands before the chosen one must be known."""
    result: object = None
    for part in node.values:
        result = _value(part, values)
        if bool(result) is isinstance(node.op, ast.Or):
            break
    return result


def _compared(node: ast.Compare, values: Mapping[str, object]) -> bool:
    left = _value(node.left, values)
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, values)
        if not COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _counted(op: type[ast.operator], left: object, right: object) -> float:
    for value in (left, right):
        if not isinstance(value, int | float) or abs(value) > _LARGEST:
            raise _UnknownError
    return ARITHMETIC[op](left, right)  # type: ignore[arg-type]
