"""Brings notices to webhooks: again after a while where one does not take it, and the team sees what became of it.

A team whose receiver hangs waits for itself alone: each team has one delivery under way at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace

from epochzero.errors import EpochZeroError
from epochzero.run.notice import Notice
from epochzero.run.notify import Webhook
from epochzero.store.audit import note
from epochzero.store.database import Database

__all__ = ["Deliveries"]

_LOGGER = logging.getLogger("epochzero.web")
_AT_ONCE = 4
_MOST_WAITING = 200
"""Of one team."""


@dataclass(frozen=True, slots=True)
class _Delivery:
    team: str
    url: str
    notice: Notice
    tried: int = 0
    due: float = 0.0


class Deliveries:
    """What waits to be told, and the threads that tell it. It is kept in this process only.

    Args:
        database: whose audit log says what became of each.
        private: whether addresses in private networks are told too.
        pauses: seconds before each further try.
    """

    def __init__(self, database: Database, *, private: bool, pauses: tuple[float, ...]) -> None:
        self._database = database
        self._private = private
        self._pauses = pauses
        self._waiting: list[_Delivery] = []
        self._busy: set[str] = set()
        self._changed = threading.Condition()
        for number in range(_AT_ONCE):
            threading.Thread(target=self._work, name=f"webhooks-{number}", daemon=True).start()

    def add(self, team: str, url: str, notice: Notice) -> None:
        """Has an address told, as soon as it is the team's turn."""
        with self._changed:
            is_full = sum(one.team == team for one in self._waiting) >= _MOST_WAITING
            if not is_full:
                self._waiting.append(_Delivery(team, url, notice))
                self._changed.notify()
        if is_full:
            self._say(team, "webhook not told", url, notice, "too many others wait")

    def _work(self) -> None:
        while True:
            one = self._next()
            try:
                self._deliver(one)
            except Exception:
                _LOGGER.exception("a webhook is not told")
            finally:
                with self._changed:
                    self._busy.discard(one.team)
                    self._changed.notify_all()

    def _next(self) -> _Delivery:
        """The delivery whose turn it is; waits for it."""
        with self._changed:
            while True:
                free = [one for one in self._waiting if one.team not in self._busy]
                first = min(free, key=lambda one: one.due, default=None)
                left = None if first is None else first.due - time.monotonic()
                if first is not None and left is not None and left <= 0:
                    self._waiting.remove(first)
                    self._busy.add(first.team)
                    return first
                self._changed.wait(left)

    def _deliver(self, one: _Delivery) -> None:
        try:
            Webhook(one.url, private=self._private).tell(one.notice)
        except EpochZeroError as error:
            problem = str(error)
        else:
            self._say(one.team, "webhook told", one.url, one.notice)
            return
        if one.tried == len(self._pauses):
            self._say(one.team, "webhook given up", one.url, one.notice, problem)
            return
        pause = self._pauses[one.tried]
        again = f"{problem}; tried again in {pause:g} s"
        self._say(one.team, "webhook not told", one.url, one.notice, again)
        with self._changed:
            later = replace(one, tried=one.tried + 1, due=time.monotonic() + pause)
            self._waiting.append(later)

    def _say(self, team: str, action: str, url: str, notice: Notice, problem: str = "") -> None:
        """Tells the team, in its audit log; of an address its host only."""
        what = f"{Webhook(url).host}: {notice.job}" + (f": {problem}" if problem else "")
        _LOGGER.log(logging.WARNING if problem else logging.INFO, "%s: %s", action, what)
        try:
            note(self._database, team, "service", action, what)
        except EpochZeroError as error:
            _LOGGER.error("the audit log cannot be written: %s", error)
