"""Computes daily sums in a background thread, so that pages respond quickly."""

from __future__ import annotations

import logging
import threading
import time

from epochzero.store.daily_counts import sum_up, uncounted
from epochzero.store.database import Database, StoreError
from epochzero.store.teams import teams

_LOGGER = logging.getLogger("epochzero.web")
_EVERY_S = 10.0


class Summing:
    """Periodically sums past days that are new or have changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="summing", daemon=True)

    def start(self) -> None:
        """Starts the thread; until days are summed, queries read the jobs themselves."""
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current block of days."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Computes all missing sums.

        Raises:
            StoreError: the store cannot be written; the rest is summed later.
        """
        now = time.time()
        for team in ("", *teams(self._database)):
            for block in uncounted(self._database, team, now=now):
                if self._ended.is_set():
                    return
                sum_up(self._database, team, block, now=now)

    def _work(self) -> None:
        while True:
            try:
                self.look()
            except StoreError as error:
                _LOGGER.error("daily sums were not updated: %s", error)
            if self._ended.wait(_EVERY_S):
                return
