"""Containers as JSON, with the tensors in them by name. Values that are not data are marked as left out.

Strings, numbers, booleans and null stand for themselves; everything else is an object with a ``kind``:

    tensor   name, requires_grad            array    name (a tensor's)
    float    value: nan, inf, -inf          bytes    value, in hexadecimal digits
    list, tuple   items                     dict     items, pairs
    named    type, items: a named tuple     object   type, fields: a dataclass or a UserDict
    left_out type: anything else, which is not stored
"""

from __future__ import annotations

import collections
import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

MOST_ITEMS = 100_000
MOST_TEXT = 1 << 16
_DEEPEST = 32
_PLAIN = (bool, int, str, type(None))
_NUMBERS = frozenset((bool, int, type(None)))
Put = Callable[[torch.Tensor], "str | None"]


class LeftOutError(ValueError):
    """A part of the encoded value was not stored."""


def encode(value: Any, put: Put, depth: int = 0) -> Any:
    """Encode a value as JSON data.

    Args:
        value: any value.
        put: stores a tensor and returns its name; None if it cannot be stored.
        depth: nesting depth of the value.
    """
    if type(value) in _PLAIN:
        return value if not isinstance(value, str) or len(value) <= MOST_TEXT else _left_out(value)
    if type(value) is float:
        return value if math.isfinite(value) else {"kind": "float", "value": str(value)}
    if isinstance(value, torch.Tensor):
        name = put(value)
        if name is None:
            return _left_out(value)
        return {"kind": "tensor", "name": name, "requires_grad": value.requires_grad}
    if depth > _DEEPEST or (hasattr(value, "__len__") and _length(value) > MOST_ITEMS):
        return _left_out(value)
    return _container(value, put, depth + 1)


def _container(value: Any, put: Put, depth: int) -> Any:
    kind = type(value)
    if kind in (list, tuple):
        plain = _NUMBERS.issuperset(map(type, value))
        items = list(value) if plain else [encode(item, put, depth) for item in value]
        return {"kind": kind.__name__, "items": items}
    if kind in (dict, collections.OrderedDict, collections.defaultdict):
        pairs = [[encode(k, put, depth), encode(v, put, depth)] for k, v in value.items()]
        return {"kind": "dict", "items": pairs}
    if kind in (bytes, bytearray) and len(value) <= MOST_TEXT:
        return {"kind": "bytes", "value": bytes(value).hex()}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        items = [encode(item, put, depth) for item in value]
        return {"kind": "named", "type": _name(kind), "items": items}
    if dataclasses.is_dataclass(value) or isinstance(value, collections.UserDict):
        fields = {name: encode(held, put, depth) for name, held in _fields(value).items()}
        return {"kind": "object", "type": _name(kind), "fields": fields}
    array = _tensor_of_array(value)
    name = put(array) if array is not None else None
    return {"kind": "array", "name": name} if name is not None else _left_out(value)


def _tensor_of_array(value: Any) -> torch.Tensor | None:
    """Return a tensor with the values of a NumPy array or number."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return None
    try:
        return torch.from_numpy(numpy.array(value))
    except (TypeError, RuntimeError):
        return None


def decode(encoded: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """Decode a value; its tensors are copies.

    Raises:
        LeftOutError: a part of it was not stored, or its type does not exist.
        ValueError, KeyError, TypeError: the data are invalid.
    """
    if type(encoded) in _PLAIN or type(encoded) is float:
        return encoded
    kind = encoded["kind"]
    if kind == "tensor":
        return tensors[encoded["name"]].clone().requires_grad_(bool(encoded["requires_grad"]))
    if kind == "array":
        return tensors[encoded["name"]].numpy().copy()
    if kind == "float":
        return float(encoded["value"])
    if kind == "bytes":
        return bytes.fromhex(encoded["value"])
    if kind == "dict":
        return {decode(k, tensors): decode(v, tensors) for k, v in encoded["items"]}
    if kind in ("list", "tuple", "named"):
        items = [decode(item, tensors) for item in encoded["items"]]
        return items if kind == "list" else _tuple(encoded, items)
    if kind == "object":
        return _object(encoded, {n: decode(v, tensors) for n, v in encoded["fields"].items()})
    raise LeftOutError(f"a {encoded.get('type')} was not recorded")


def _tuple(encoded: Mapping[str, Any], items: list[Any]) -> Any:
    if encoded["kind"] == "tuple":
        return tuple(items)
    kind = _type(encoded["type"])
    names = getattr(kind, "_fields", None)
    if not issubclass(kind, tuple) or names is None or len(names) != len(items):
        raise LeftOutError(f"{encoded['type']} has changed")
    return tuple.__new__(kind, items)


def _object(encoded: Mapping[str, Any], fields: dict[str, Any]) -> Any:
    """Return an object with these fields, without running any of its code."""
    kind = _type(encoded["type"])
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, collections.UserDict)):
        raise LeftOutError(f"{encoded['type']} has changed")
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _fields(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return dict(vars(value))


def _type(name: str) -> type:
    """Return a class of a module that the job itself has imported."""
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise LeftOutError(f"type {name} does not exist")
    return found


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _length(value: Any) -> int:
    try:
        return len(value)
    except Exception:
        return 0


def _left_out(value: Any) -> dict[str, str]:
    return {"kind": "left_out", "type": _name(type(value))}
