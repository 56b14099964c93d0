"""What the iterations of a loop leave behind, where the dry run leaves iterations out.

A list to which each iteration adds gets its last items once more for those that are left out, so that it
and what is made of it have their true sizes; with true values only where these take little memory. On a
pretended GPU the memory that outlives its iteration is extrapolated from the trace, which is reported where
iterations are left out.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import Any

MOST_ITEMS = 1_000_000
MOST_BYTES = 64 << 20
"""Of what is added with true values, were it made one."""
MOST_ROUNDS = 256
"""So many of the iterations before are looked at."""

Gap = tuple[int, int]
"""How many iterations were run before some that are left out, and how many these are."""
Find = Callable[[], Any]


class Lists:
    """The lists to which the iterations of one loop add.

    Args:
        finds: each finds one that the loop's body surely only adds to.
        real: whether its items have true values, and take memory.
    """

    def __init__(self, finds: tuple[Find, ...], *, real: bool) -> None:
        self._finds = finds
        self._real = real
        self._lengths: deque[dict[int, int]] = deque(maxlen=2)

    def begins(self) -> None:
        """An iteration begins."""
        self._lengths.append({id(items): len(items) for items in self._found()})

    def left_out(self, count: int) -> bool:
        """As many iterations are left out: what they would add is added; whether it is to any list."""
        if len(self._lengths) < 2:
            return False
        before, then = self._lengths
        grown = [items for items in self._found() if _grew(items, before, then)]
        for items in grown:
            last = items[then[id(items)] - len(items) :]
            if _is_little(last, count, real=self._real):
                items.extend(last * count)
                for lengths in self._lengths:
                    lengths[id(items)] += len(last) * count
        return bool(grown)

    def add_again(self, find: Find, count: int) -> None:
        """The last item of a list once more for each of as many iterations."""
        for items in _lists(find):
            if _is_little(items[-1:], count, real=self._real):
                items.extend(items[-1:] * count)

    def _found(self) -> Iterator[list[Any]]:
        for find in self._finds:
            yield from _lists(find)


class Growth:
    """By how much an iteration advances the counters of loops within it, whose lengths may vary.

    Args:
        finds: each finds the value of one counter.
    """

    def __init__(self, finds: tuple[Find, ...]) -> None:
        self._finds = finds
        self._values: list[Any] = [None] * len(finds)
        self._total = [0] * len(finds)
        self._iterations = -1

    def ends(self) -> None:
        """An iteration has ended, or none has begun yet."""
        self._iterations += 1
        for number, find in enumerate(self._finds):
            begun, self._values[number] = self._values[number], None
            with suppress(NameError, AttributeError):
                self._values[number] = find()
            if type(self._values[number]) is type(begun) is int:
                self._total[number] += self._values[number] - begun

    def begins(self, ahead: int) -> None:
        """An iteration begins, after as many that are left out."""
        for number, value in enumerate(self._values):
            if type(value) is int:
                self._values[number] = value + self.after(number, ahead)

    def after(self, number: int, iterations: int) -> int:
        """By how much so many iterations advance a counter, as the mean of those that were run."""
        return round(self._total[number] / max(self._iterations, 1) * iterations)


class IterationMemory:
    """Watches what the iterations of one loop keep on a pretended GPU.

    Args:
        trace: of it.
        lists: to which the loop adds.
        sure: whether all that the loop makes is kept, as in a comprehension.
    """

    def __init__(self, trace: Any, lists: Lists, *, sure: bool) -> None:
        self._trace = trace
        self._lists = lists
        self._sure = sure
        self._begun: deque[int] = deque(maxlen=MOST_ROUNDS)
        self._open: Any = None

    def begins(self) -> None:
        """An iteration begins."""
        self.ends()
        self._begun.append(self._trace.taken)

    def ends(self) -> None:
        """An iteration has ended: the first after others that were left out shows what it kept."""
        if self._open is not None:
            self._open["until"] = len(self._trace.events)
            self._open = None

    def left_out(self, count: int) -> None:
        """As many iterations are left out here, if two were run before."""
        if len(self._begun) < 2:
            return
        *_, first, second = self._begun
        if not (self._trace.lives(first, second) and self._trace.lives(second, self._trace.taken)):
            return
        gc.collect()  # what only waits for the collector is not kept
        grown = self._lists.left_out(count)
        self._open = self._trace.left_out(count, self._begun, sure=self._sure or grown)


def _lists(find: Find) -> Iterator[list[Any]]:
    with suppress(Exception):
        found = find()
        if type(found) is list:
            yield found


def _grew(items: list[Any], before: dict[int, int], then: dict[int, int]) -> bool:
    """Whether a list grew by as much in each of the last two iterations."""
    first, second = before.get(id(items)), then.get(id(items))
    return first is not None and second is not None and 0 < second - first == len(items) - second


def _is_little(items: Any, count: int, *, real: bool) -> bool:
    """Whether items can be there so many times more."""
    return len(items) * count <= MOST_ITEMS and not (real and _bytes(items) * count > MOST_BYTES)


def _bytes(item: Any) -> int:
    """Of the arrays and tensors in an item."""
    if isinstance(item, (list, tuple)):
        return sum(map(_bytes, item))
    if isinstance(item, dict):
        return sum(map(_bytes, item.values()))
    try:
        return int(item.nbytes)
    except Exception:
        return 0


def filled(made: Any, gaps: list[Gap], *, real: bool) -> Any:
    """What a comprehension made, with the item before each gap once more for each that is missing.

    Args:
        made: a list, or a generator, which adds to the gaps while it runs.
        gaps: of the loop.
        real: whether its items have true values, and take memory.
    """
    every = _filled(made, gaps, real=real)
    return list(every) if isinstance(made, list) else every


def _filled(made: Iterable[Any], gaps: list[Gap], *, real: bool) -> Iterator[Any]:
    last, passed = None, 0
    for number, item in enumerate(made):
        if passed < len(gaps) and gaps[passed][0] == number:
            yield from _again(last, gaps[passed], real=real)
            passed += 1
        yield item
        last = item
    for gap in gaps[passed:]:
        yield from _again(last, gap, real=real)


def _again(item: Any, gap: Gap, *, real: bool) -> Iterator[Any]:
    taken, count = gap
    little = _is_little([item], min(count, MOST_ITEMS), real=real)
    return repeat(item, min(count, MOST_ITEMS) if taken and little else 0)
