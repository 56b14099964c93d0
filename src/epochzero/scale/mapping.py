"""Applies one function to many items over an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from epochzero.scale.engines import ProcessEngine, WorkerLostError

ATTEMPTS = 2
Item = TypeVar("Item")
Given = TypeVar("Given")


def each(
    engine: ProcessEngine, function: Callable[[Item], Given], items: Iterable[Item]
) -> Iterator[tuple[Item, Given | None]]:
    """Yield each item with the function's result, in order of completion; as many run at a time as there are workers.

    Args:
        engine: that runs the calls.
        function: a module-level function that returns something other than None.
        items: that can be pickled.

    Yields:
        None as the result if the worker was lost `ATTEMPTS` times.
    """
    waiting = deque((item, 1) for item in items)
    under_way: dict[Any, tuple[Item, int]] = {}
    while waiting or under_way:
        while waiting and len(under_way) < engine.workers:
            item, attempt = waiting.popleft()
            under_way[engine.start(function, item)] = (item, attempt)
        for handle in engine.ended(list(under_way)):
            item, attempt = under_way.pop(handle)
            try:
                yield item, engine.result(handle)
            except WorkerLostError:
                if attempt < ATTEMPTS:
                    waiting.append((item, attempt + 1))
                else:
                    yield item, None
