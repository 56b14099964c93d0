"""Stores diagnosed jobs, those of concurrent requests in one transaction.

A commit takes as long for many jobs as for one. While one is in progress, jobs of other requests queue up, and the
next commit writes all of them (group commit; DeWitt et al., "Implementation Techniques for Main Memory
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
    """The jobs of one request, and the result of writing them."""

    endings: Sequence[Ending]
    added: frozenset[str] | None = None
    trouble: BaseException | None = None


class Keeping:
    """Adds finished jobs to the store. Threads share one instance."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._gathering = threading.Lock()
        self._writing = threading.Lock()

    def keep(self, endings: Sequence[Ending]) -> frozenset[str]:
        """Adds jobs, all or none; they are stored when it returns.

        Returns:
            The IDs of the new ones.

        Raises:
            StoreError: the store cannot be written.
            InputError: a job is not valid.
        """
        for ending in endings:
            ending.split()
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
        """The oldest requests, limited in the size of their logs so that the others do not wait long."""
        with self._gathering:
            sizes = itertools.accumulate(
                sum(ending.size for ending in each.endings) for each in self._waiting
            )
            count = max(1, sum(size <= _BYTES_AT_ONCE for size in sizes))
            group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    def _write(self, group: Sequence[_Waiting]) -> None:
        """Writes a group of requests; a request that the store rejects does not affect the others."""
        try:
            added = add_endings(
                self._database, itertools.chain.from_iterable(w.endings for w in group)
            )
        except BaseException as error:
            # A database that does not respond would not respond to single requests either.
            if len(group) == 1 or isinstance(error, StoreAwayError):
                for waiting_job in group:
                    waiting_job.trouble = error
                return
            for waiting_job in group:
                self._write([waiting_job])
            return
        for waiting_job in group:
            # If two requests contain the same job, the first has added it.
            waiting_job.added = added.intersection(
                ending.identity for ending in waiting_job.endings
            )
            added -= waiting_job.added
