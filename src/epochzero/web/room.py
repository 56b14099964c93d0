"""Limits concurrent work: more requests wait, and too many are rejected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from epochzero.web.limits import too_many

_MOST_WAITING = 256
"""Per name."""
_AGAIN_S = 5.0


@dataclass(slots=True)
class _Queue:
    """The current work under a name, and the waiting requests."""

    used: int = 0
    waiting: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)


class Room:
    """A capacity per name. The requests of one event loop share it.

    Args:
        most: the capacity; a larger request runs alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: dict[str, _Queue] = {}

    @asynccontextmanager
    async def taken(self, name: str = "", size: int = 1) -> AsyncIterator[None]:
        """Waits for capacity and holds it in the context.

        Raises:
            HTTPException: 429 if too many requests are waiting.
        """
        line = self._lines.setdefault(name, _Queue())
        if line.waiting >= _MOST_WAITING:
            raise too_many(_AGAIN_S)
        line.waiting += 1
        try:
            async with line.turn:  # First come, first served.
                while line.used and line.used + size > self._most:
                    line.freed.clear()
                    await line.freed.wait()
                line.used += size
        finally:
            line.waiting -= 1
        try:
            yield
        finally:
            line.used -= size
            line.freed.set()
            if not line.used and not line.waiting:
                self._lines.pop(name, None)
