"""Python's operators as functions, by the class of their nodes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
EQUALITY: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    **EQUALITY,
    **ORDER,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
"""Operators whose results stay in the range of their operands, unlike powers and shifts."""
BINARY: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    **ARITHMETIC,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
