"""What is known of objects that may be hashed and compared in ways of their own, as modules may be."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class ByIdentity(Generic[Value]):
    """A mapping from objects, by what they are, not by what they equal; it keeps none alive."""

    def __init__(self) -> None:
        self._items: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def get(self, owner: object) -> Value | None:
        """What is known of the object."""
        item = self._items.get(id(owner))
        return item[1] if item is not None and item[0]() is owner else None

    def set(self, owner: object, value: Value) -> None:
        """Know this of the object, as long as it lives."""
        number = id(owner)
        self._items[number] = weakref.ref(owner, lambda _: self._items.pop(number, None)), value
