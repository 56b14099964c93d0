"""Splits batches of any structure into micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

from torch import Tensor

from epochzero.errors import InputError


def examples_of(batch: Any) -> int:
    """Return the number of examples: the first dimension, which all tensors of the batch share.

    Raises:
        InputError: they do not share it, or no tensor has a dimension.
    """
    sizes = {path: tensor.shape[0] for path, tensor in tensors_of(batch) if tensor.dim()}
    if not sizes:
        raise InputError(
            f"a batch of type {type(batch).__name__} contains no tensor to split: pass split= and weight="
        )
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"batch{path} has {size}" for path, size in list(sizes.items())[:4])
        raise InputError(
            f"the tensors of a batch differ in the size of their first dimension ({listed}), so it cannot be split by example: "
            "pass split= and weight="
        )
    return next(iter(sizes.values()))


def split(batch: Any, parts: int) -> list[Any]:
    """Return this many micro-batches, at most one per example; their sizes differ by at most one."""
    if parts == 1:
        return [batch]
    examples = examples_of(batch)
    parts = min(parts, examples)
    bounds = [index * examples // parts for index in range(parts + 1)]
    return [part_of(batch, *pair) for pair in pairwise(bounds)]


def part_of(batch: Any, first: int, end: int) -> Any:
    """Return the examples from ``first`` to before ``end``.

    Tensors, and lists with one entry per example, are cut; every part gets all other values.
    """
    examples = examples_of(batch)

    def cut(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value[first:end] if value.dim() else value
        if isinstance(value, list) and len(value) == examples and not any(tensors_of(value)):
            return value[first:end]
        return _with_items(value, cut)

    return cut(batch)


def tensors_of(batch: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors with their paths, as written after ``batch`` in code."""
    if isinstance(batch, Tensor):
        yield path, batch
    for name, item in _items(batch):
        yield from tensors_of(item, path + name)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name)) for field in fields(value))


def _with_items(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same kind of container with changed items; return anything else unchanged."""
    if isinstance(value, Mapping):
        changed = {key: change(item) for key, item in value.items()}
        return changed if type(value) is dict else type(value)(changed)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(change, value))
    if isinstance(value, list | tuple):
        return type(value)(map(change, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                field.name: change(getattr(value, field.name))
                for field in fields(value)
                if field.init
            },
        )
    return value
