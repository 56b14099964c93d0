"""Keeps diagnosed jobs: those of requests that come at the same time in one transaction.

A commit takes as long for many jobs as for one. While one is under way, the jobs of others gather; whoever
comes first after it writes them all (group commit; DeWitt et al., "Implementation Techniques for Main Memory
Database Systems", SIGMOD 1984, Section 5.2).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from epochzero.store.database import Database, StoreAwayError
from epochzero.store.recorder import Ending, add_endings

_BYTES_AT_ONCE = 64 << 20


@dataclass(slots=True)
class _Waiting:
    """What one request wants to have kept, and what became of it."""

    endings: Sequence[Ending]
    added: frozenset[str] | None = None
    trouble: BaseException | None = None


class Keeping:
    """Adds jobs that are over to the store. Threads share one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._gathering = threading.Lock()
        self._writing = threading.Lock()

    def keep(self, endings: Sequence[Ending]) -> frozenset[str]:
        """Adds jobs, all or none; they are in the store when it returns.

        Returns:
            The identities of those that were new.

        Raises:
            StoreError: the store cannot be written.
            InputError: a job is none.
        """
        mine = _Waiting(endings)
        with self._gathering:
            self._waiting.append(mine)
        with self._writing:
            while mine.added is None and mine.trouble is None:
                self._write(self._next_group())
        if mine.trouble is not None:
            raise mine.trouble
        assert mine.added is not None
        return mine.added

    def _next_group(self) -> Sequence[_Waiting]:
        """Those who have waited longest, with so few bytes of logs that the others need not wait long for them."""
        with self._gathering:
            sizes = itertools.accumulate(
                sum(one.size for one in each.endings) for each in self._waiting
            )
            count = max(1, sum(size <= _BYTES_AT_ONCE for size in sizes))
            group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    def _write(self, group: Sequence[_Waiting]) -> None:
        """Writes what a group of requests has; one that the store refuses does not hold up the others."""
        try:
            added = add_endings(
                self._database, itertools.chain.from_iterable(one.endings for one in group)
            )
        except BaseException as error:
            # A database that does not answer would not answer each of them either.
            if len(group) == 1 or isinstance(error, StoreAwayError):
                for one in group:
                    one.trouble = error
                return
            for one in group:
                self._write([one])
            return
        for one in group:
            # Of two requests with the same job the first has brought it.
            one.added = added.intersection(ending.identity for ending in one.endings)
            added -= one.added
