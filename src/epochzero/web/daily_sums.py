"""Sums up the days that are over, in a thread of its own, so that the pages answer at once."""

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
    """Looks from time to time for days that are over, or changed, and are not summed up."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="summing", daemon=True)

    def start(self) -> None:
        """Begins; what is not summed up is asked of the jobs themselves until then."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the days in hand."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Sums up all that there is.

        Raises:
            StoreError: the store cannot be written; the rest is summed up another time.
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
                _LOGGER.error("days are not summed up: %s", error)
            if self._ended.wait(_EVERY_S):
                return
