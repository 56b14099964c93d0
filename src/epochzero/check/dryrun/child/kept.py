"""What the iterations of a loop leave behind, where the dry run leaves iterations out.

On a pretended GPU no value matters: a list to which each iteration adds gets its last items once more for
those that are left out, so that what is made of the whole list has its true shape. The memory that
outlives its iteration is extrapolated from the trace, which is told where iterations are left out.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

__all__ = ["Gap", "Kept", "filled"]

MOST_ITEMS = 1_000_000
MOST_ROUNDS = 256
"""So many of the iterations before are looked at."""

Gap = tuple[int, int]
"""How many iterations were run before some that are left out, and how many these are."""
Find = Callable[[], Any]


class Kept:
    """Watches what the iterations of one loop keep.

    Args:
        trace: of the pretended GPU.
        lists: finds what the loop's body surely only adds to.
        sure: whether all that the loop makes is kept, as in a comprehension.
    """

    def __init__(self, trace: Any, lists: tuple[Find, ...], *, sure: bool) -> None:
        self._trace = trace
        self._lists = lists
        self._sure = sure
        self._begun: deque[int] = deque(maxlen=MOST_ROUNDS)
        self._lengths: deque[dict[int, int]] = deque(maxlen=2)
        self._open: Any = None

    def begins(self) -> None:
        """An iteration begins."""
        self.ends()
        self._begun.append(self._trace.taken)
        self._lengths.append({id(one): len(one) for one in self._found()})

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
        before, then = self._lengths
        gc.collect()  # what only waits for the collector is not kept
        grown = [one for one in self._found() if _grew(one, before, then)]
        for one in grown:
            last = one[then[id(one)] - len(one) :]
            if len(last) * count <= MOST_ITEMS:
                one.extend(last * count)
        self._open = self._trace.left_out(count, self._begun, sure=self._sure or bool(grown))

    def _found(self) -> Iterator[list[Any]]:
        for find in self._lists:
            try:
                found = find()
            except Exception:
                continue
            if type(found) is list:
                yield found


def _grew(items: list[Any], before: dict[int, int], then: dict[int, int]) -> bool:
    """Whether a list grew by as much in each of the last two iterations."""
    first, second = before.get(id(items)), then.get(id(items))
    return first is not None and second is not None and 0 < second - first == len(items) - second


def filled(made: Any, gaps: list[Gap]) -> Any:
    """What a comprehension made, with the item before each gap once more for each that is missing.

    Args:
        made: a list, or a generator, which adds to the gaps while it runs.
        gaps: of the loop.
    """
    return list(_filled(made, gaps)) if isinstance(made, list) else _filled(made, gaps)


def _filled(made: Iterable[Any], gaps: list[Gap]) -> Iterator[Any]:
    last, passed = None, 0
    for number, item in enumerate(made):
        if passed < len(gaps) and gaps[passed][0] == number:
            yield from _again(last, gaps[passed])
            passed += 1
        yield item
        last = item
    for gap in gaps[passed:]:
        yield from _again(last, gap)


def _again(item: Any, gap: Gap) -> Iterator[Any]:
    taken, count = gap
    return repeat(item, min(count, MOST_ITEMS) if taken else 0)
