"""Errors that Python raises for values of a known type, with Python's messages.

A container may stand for other iterables: a ``list`` for a generator or a view of a dictionary, a ``tuple`` for a range.
Only errors that all of them raise are reported.
"""

from __future__ import annotations

import ast
import collections
import operator
from collections.abc import Mapping
from types import GeneratorType

from epochzero.check.program.heap import Box, Class, Function, JobModule, Object, V
from epochzero.check.program.operators import ARITHMETIC, ORDER
from epochzero.check.program.values import Constant, Items, Text

_UNKNOWN = object()
_SAMPLES: Mapping[str, object] = {"list": [], "tuple": (), "dict": {}, "set": set()}
_BINARY = {**ARITHMETIC, ast.Pow: operator.pow}
_ITERATED: tuple[type, ...] = (
    range,
    type(iter([])),
    type({}.keys()),
    type({}.items()),
    map,
    zip,
    collections.deque,
)
_ALIKE: Mapping[str, tuple[type, ...]] = {
    "list": (list, tuple, set, GeneratorType, *_ITERATED),
    "tuple": (tuple, range),
    "dict": (dict, collections.OrderedDict, collections.Counter, collections.defaultdict),
    "set": (set, frozenset),
}
_OF_TUPLES = frozenset({"major", "minor", "micro", "releaselevel", "serial"})
"""The type of ``sys.version_info``."""


def is_none(value: V) -> bool:
    """Whether a value is None."""
    return isinstance(value, Constant) and value.value is None


def type_name(value: V) -> str:
    """The name of a value's type; empty if unknown."""
    match value:
        case Constant():
            return type(value.value).__name__
        case Text():
            return "str"
        case Box() | Items():
            return value.kind
        case Function():
            return "function"
        case Class():
            return "type"
        case JobModule():
            return "module"
        case Object():
            return value.cls.name.rpartition(".")[2]
    return ""


def has_attribute(value: V, name: str) -> bool | None:
    """Whether a value of a built-in type has an attribute; None if unknown."""
    if isinstance(value, Constant):
        return hasattr(value.value, name)
    if isinstance(value, Text):
        return hasattr("", name)
    if isinstance(value, Box) and value.mirrors is None:
        known = name in _OF_TUPLES or any(hasattr(class_, name) for class_ in _ALIKE[value.kind])
        return None if known else False
    return None


def joined(items: V) -> str:
    """Python's error for joined items; empty if all of them may be texts."""
    content = items.content if isinstance(items, Box) else None
    if content is None or not content.complete or (isinstance(items, Box) and items.kind == "dict"):
        return ""
    for at, value in enumerate(content.values):
        if isinstance(value, Constant) and not isinstance(value.value, (str, bytes)):
            return f"sequence item {at}: expected str instance, {type_name(value)} found"
    return ""


def refused(op: ast.operator | ast.cmpop, left: V, right: V) -> str:
    """Python's error for a binary operator; empty if it may succeed."""
    function = _BINARY.get(type(op)) if isinstance(op, ast.operator) else ORDER.get(type(op))
    first, second = _sample(left), _sample(right)
    if function is None or first is _UNKNOWN or second is _UNKNOWN:
        return ""
    if isinstance(op, ast.Mod) and isinstance(first, str | bytes):
        return ""  # a format
    if isinstance(left, Box) and isinstance(right, Box):
        return ""
    try:
        function(first, second)
    except TypeError as error:
        return str(error)
    except ArithmeticError:
        return ""
    return ""


def subscripted(value: V) -> str:
    """Python's error for indexing a value; empty if it may succeed."""
    match value:
        case Constant(value=None | bool() | int() | float() | complex()):
            return f"'{type_name(value)}' object is not subscriptable"
        case Function(is_changed=False) | JobModule():
            return f"'{type_name(value)}' object is not subscriptable"
    return ""


def _sample(value: V) -> object:
    """A sample value of the same type; operations on it stay small."""
    match value:
        case Constant(value=None | bool()):
            return value.value
        case Constant(value=bytes()):
            return b""
        case Constant(value=str()) | Text():
            return ""
        case Constant():
            return type(value.value)(1)  # type: ignore[misc]
        case Box():
            return _SAMPLES[value.kind]
    return _UNKNOWN
