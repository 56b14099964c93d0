"""What a loop runs over, such that iterations can be looked at and left out.

A range and a list can be asked for any of their values; an enumeration for its numbers; a data
loader draws the indices of the batches that it leaves out, and so comes to its real last batch.
"""

from __future__ import annotations

import builtins
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Any

LONGEST_SKIP_S = 1.0
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


class _Unknown:
    """A value that is not known before it is drawn; every operation on it raises TypeError."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError

    def __bool__(self) -> bool:
        raise TypeError


UNKNOWN = _Unknown()


class Source:
    """Items one after the other, from any iterable.

    Attributes:
        endless: whether it never ends by itself.
    """

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._iterator = iter(iterable)
        self._left = _length(iterable)
        self.endless = isinstance(iterable, _ENDLESS)

    @property
    def left(self) -> int | None:
        """How many are still to come; None where that is not known."""
        return self._left

    def value(self, ahead: int, part: str) -> Any:
        """The item that comes after ``ahead`` others, or its first element; UNKNOWN mostly."""
        return UNKNOWN

    def draw(self, ahead: int) -> Any:
        """The item after ``ahead`` others.

        Raises:
            StopIteration: there is none.
        """
        if self._left is not None:
            self._left = max(0, self._left - ahead - 1)
        self._skip(ahead)
        return next(self._iterator)

    def _skip(self, ahead: int) -> None:
        """Nothing: the next item stands for the one that would be."""


class _Indexed(Source):
    """A range, a list or a tuple."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self._items = items
        self._next = 0

    def value(self, ahead: int, part: str) -> Any:
        item = self._items[self._next + ahead]
        if part == "whole":
            return item
        return item[0] if isinstance(item, tuple) and item else UNKNOWN

    def draw(self, ahead: int) -> Any:
        self._next += ahead + 1
        self._left = max(0, len(self._items) - self._next)
        if self._next > len(self._items):
            raise StopIteration
        return self._items[self._next - 1]


class _Batches(Source):
    """A data loader of torch."""

    def _skip(self, ahead: int) -> None:
        until = time.monotonic() + LONGEST_SKIP_S
        for _ in range(ahead):
            if time.monotonic() > until:
                return
            self._iterator._next_index()  # type: ignore[attr-defined]


class Enumerated:
    """As ``enumerate``, with numbers that can be looked at and advanced."""

    def __init__(self, iterable: Iterable[Any], start: int = 0) -> None:
        self.iterable = iterable
        self.start = start

    def __iter__(self) -> Iterator[Any]:
        return builtins.enumerate(self.iterable, self.start)


class _Numbered(Source):
    def __init__(self, enumerated: Enumerated) -> None:
        self._inner = source_of(enumerated.iterable)
        self._number = enumerated.start
        self.endless = self._inner.endless

    @property
    def left(self) -> int | None:
        return self._inner.left

    def value(self, ahead: int, part: str) -> Any:
        return self._number + ahead if part == "first" else UNKNOWN

    def draw(self, ahead: int) -> Any:
        number = self._number + ahead
        item = self._inner.draw(ahead)
        self._number = number + 1
        return number, item


def source_of(iterable: Any) -> Source:
    """The items of an iterable; those that a progress bar shows are asked for themselves."""
    kind = type(iterable)
    if kind.__name__.startswith("tqdm") and iterable.iterable is not None:
        return source_of(iterable.iterable)
    if kind in (range, list, tuple):
        return _Indexed(iterable)
    if kind is Enumerated:
        return _Numbered(iterable)
    if _is_loader(iterable):
        return _Batches(iterable)
    return Source(iterable)


def _is_loader(iterable: Any) -> bool:
    """Whether batches can be left out: a loader of torch itself, over samples that have numbers."""
    kind = type(iterable)
    return (kind.__module__, kind.__name__) == ("torch.utils.data.dataloader", "DataLoader") and (
        hasattr(iterable.dataset, "__getitem__")
    )


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except Exception:
        return None
