"""Delivers webhook notifications, repeats failed deliveries, and records the results for the team.

Pending notifications are in the store and survive restarts. Each team has at most one delivery in progress, so a
hanging receiver delays only its own team.
"""

from __future__ import annotations

import logging
import threading
import time

from epochzero.errors import EpochZeroError
from epochzero.run.reports.notifications import Webhook
from epochzero.store.database import Database, StoreError
from epochzero.store.outbox import Owed, begin, due, settle
from epochzero.web.notices import failure_notice

_LOGGER = logging.getLogger("epochzero.web")
_AT_ONCE = 4
_EVERY_S = 1.0
_LONGEST_PAUSE_S = 30.0
_TAKES_S = 30.0
"""Maximum duration of a delivery; an older one was started by a service that has stopped."""


class Deliveries:
    """Periodically delivers due notifications in threads.

    Args:
        database: the store.
        private: whether addresses in private networks are allowed.
        pauses: seconds before each further attempt.
        url: of the service, for links.
    """

    def __init__(
        self, database: Database, *, private: bool, pauses: tuple[float, ...], url: str = ""
    ) -> None:
        self._database = database
        self._url = url
        self._private = private
        self._pauses = pauses
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="webhooks", daemon=True)

    def start(self) -> None:
        """Starts with notifications that an earlier service left."""
        self._thread.start()

    def stop(self) -> None:
        """Stops; undelivered notifications remain in the store."""
        self._ended.set()
        self._changed.set()
        self._thread.join()

    def _work(self) -> None:
        pause = _EVERY_S
        while not self._ended.is_set():
            try:
                self._begin_due()
                pause = _EVERY_S
            except StoreError as error:
                _LOGGER.error("webhooks were not notified: %s", error)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            self._changed.wait(pause)
            self._changed.clear()

    def _begin_due(self) -> None:
        with self._lock:
            busy = frozenset(self._busy)
        room = _AT_ONCE - len(busy)
        if not room:
            return
        for delivery in due(self._database, time.time(), without=busy)[:room]:
            if begin(self._database, delivery, time.time() + _TAKES_S):
                with self._lock:
                    self._busy.add(delivery.team)
                threading.Thread(target=self._tell, args=(delivery,), daemon=True).start()

    def _tell(self, owed: Owed) -> None:
        try:
            self._settle(owed, self._problem(owed))
        except StoreError as error:
            _LOGGER.error("the result of a webhook delivery was not stored: %s", error)
        except Exception:
            _LOGGER.exception("a webhook was not notified")
        finally:
            with self._lock:
                self._busy.discard(owed.team)
            self._changed.set()

    def _problem(self, owed: Owed) -> str:
        """The error of a delivery attempt; empty if it succeeded."""
        if owed.tried > len(self._pauses):
            return "the service stopped during the delivery"
        try:
            notice = failure_notice(self._database, owed.job, owed.attempt, self._url)
            Webhook(owed.url, private=self._private).notify(notice, owed.identity)
        except StoreError:
            raise
        except EpochZeroError as error:
            return str(error)
        return ""

    def _settle(self, owed: Owed, problem: str) -> None:
        """Records the result in the team's audit log; of the address, only the host."""
        again = None
        action = "webhook abandoned" if problem else "webhook notified"
        if problem and owed.tried < len(self._pauses):
            pause = self._pauses[owed.tried]
            again = time.time() + pause
            action, problem = "webhook not notified", f"{problem}; next attempt in {pause:g} s"
        what = f"{Webhook(owed.url).host}: {owed.job}" + (f": {problem}" if problem else "")
        _LOGGER.log(logging.WARNING if problem else logging.INFO, "%s: %s", action, what)
        settle(self._database, owed, action, what, again=again)
