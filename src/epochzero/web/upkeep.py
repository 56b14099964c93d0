"""Upkeep of the store in a background thread: daily sums, so that pages respond quickly, and the end of old logs."""

from __future__ import annotations

import logging
import threading
import time

from epochzero.store.audit import note
from epochzero.store.daily_counts import DAY_S, sum_up, uncounted
from epochzero.store.database import Database, StoreError
from epochzero.store.retention import prune
from epochzero.store.teams import teams

_LOGGER = logging.getLogger("epochzero.web")
_EVERY_S = 10.0


class Upkeep:
    """Periodically sums past days that are new or have changed, and once a day deletes old logs.

    Args:
        database: the store.
        log_days: for how long logs and samples of ended jobs are stored; None for all time.
    """

    def __init__(self, database: Database, log_days: float | None = None) -> None:
        self._database = database
        self._log_days = log_days
        self._next_pruning = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="upkeep", daemon=True)

    def start(self) -> None:
        """Starts the thread; until days are summed, queries read the jobs themselves."""
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current block of days."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Does what is due.

        Raises:
            StoreError: the store cannot be written; the rest is done later.
        """
        now = time.time()
        names = ("", *teams(self._database))
        for team in names:
            for _ in ("blocks", "windows"):
                for missing in uncounted(self._database, team, now=now):
                    if self._ended.is_set():
                        return
                    sum_up(self._database, team, missing, now=now)
        if self._log_days is None or now < self._next_pruning:
            return
        for team in names:
            done = prune(self._database, before=now - self._log_days * DAY_S, team=team)
            if done.log_bytes:
                what = f"{done.log_bytes} bytes, of jobs that ended {self._log_days:g} days ago"
                note(self._database, team, "server", "logs pruned", what)
        self._next_pruning = now + DAY_S

    def _work(self) -> None:
        while True:
            try:
                self.look()
            except StoreError as error:
                _LOGGER.error("the upkeep of the store failed: %s", error)
            if self._ended.wait(_EVERY_S):
                return
