"""Imports the spool into the store in a background thread, so that senders never wait for the database.

Data that the store does not accept remain in the spool and are tried again; at startup, the whole spool is read.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from epochzero.errors import EpochZeroError
from epochzero.run.records.journal import NAME
from epochzero.store.database import Database, StoreError
from epochzero.store.recorder import mark_lost, take_in_all
from epochzero.store.retention import prune_folders, stored
from epochzero.web.metrics import Metrics
from epochzero.web.spool import Spool
from epochzero.web.validation import origin_of

_LOGGER = logging.getLogger("epochzero.web")
_EVERY_S = 0.2
_AT_ONCE = 100
_TIDY_EVERY_S = 60.0
_KEPT_S = 24 * 3600.0
"""How long sent data remain visible to a late sender."""
_LONGEST_PAUSE_S = 30.0


class Intake:
    """Imports journals into the store."""

    def __init__(self, database: Database, spool: Spool, metrics: Metrics) -> None:
        self._database = database
        self._spool = spool
        self._metrics = metrics
        self._waiting: dict[Path, str] = {}
        self._failed: dict[Path, str] = {}
        self._used: dict[str, int] = {}
        self._is_taking = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="intake", daemon=True)

    def start(self) -> None:
        """Starts with data that an earlier service left."""
        for team in self._spool.teams():
            self._spool.recover(team)
            self._used[team] = self._spool.used(team)
            for journal in self._spool.journals(team):
                self._waiting[journal] = team
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current journals; the rest remains in the spool."""
        self._ended.set()
        self._thread.join()

    def grown(self, team: str, file: Path, size: int) -> None:
        """Registers new bytes of a file in the spool."""
        with self._lock:
            self._used[team] = self._used.get(team, 0) + size
            if file.name == NAME:
                self._waiting[file] = team

    def used(self, team: str) -> int:
        """Bytes of a team in the spool."""
        return self._used.get(team, 0)

    def idle(self) -> bool:
        """Whether everything has been imported."""
        with self._lock:
            return not self._waiting and not self._is_taking

    def _work(self) -> None:
        pause = _EVERY_S
        tidied = 0.0
        while not self._ended.wait(pause):
            try:
                try:
                    self._take_in()
                finally:
                    self._is_taking = False
                if time.monotonic() - tidied > _TIDY_EVERY_S:
                    self._tidy()
                    tidied = time.monotonic()
                pause = _EVERY_S
            except StoreError as error:
                self._metrics.failures.inc()
                _LOGGER.error("the store does not accept records: %s", error)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            except Exception:  # Only this thread imports.
                self._metrics.failures.inc()
                _LOGGER.exception("the spool cannot be cleaned up")
                tidied = time.monotonic()

    def _take_in(self) -> None:
        """Imports all waiting journals.

        Raises:
            StoreError: the store does not respond; the rest continues to wait.
        """
        with self._lock:
            waiting = dict(self._waiting)
            self._is_taking = bool(waiting)
        self._metrics.waiting.set(len(waiting))
        trouble: StoreError | None = None
        left = iter(waiting.items())
        while some := dict(itertools.islice(left, _AT_ONCE)):
            if self._ended.is_set():
                return
            with self._lock:
                for journal in some:
                    self._waiting.pop(journal, None)
            origins = {journal: origin_of(team) for journal, team in some.items()}
            try:
                results = take_in_all(self._database, origins)
            except StoreError:
                self._wait(some)
                raise
            for journal, result in results.items():
                try:
                    self._taken(result)
                except StoreError as error:
                    # A journal that the store rejects must not block the others.
                    trouble = error
                    self._wait({journal: some[journal]})
                except EpochZeroError as error:
                    _LOGGER.warning("%s was not imported: %s", journal, error)
                except Exception:
                    # Again in a minute: trying at once could repeat the same error for ever.
                    self._failed[journal] = some[journal]
                    self._metrics.failures.inc()
                    _LOGGER.exception("%s was not imported", journal)
            self._release(some)
        if trouble is not None:
            raise trouble

    def _release(self, journals: Mapping[Path, str]) -> None:
        """Deletes content that is completely stored: unlike the store, it may contain secrets."""
        for team in set(journals.values()):
            own = (journal for journal, whose in journals.items() if whose == team)
            for journal, size in stored(self._database, own, origin_of(team)).items():
                self._spool.release(journal.parent, size)

    def _wait(self, journals: Mapping[Path, str]) -> None:
        with self._lock:
            for journal, team in journals.items():
                self._waiting.setdefault(journal, team)

    def _taken(self, result: int | Exception) -> None:
        """Counts the imported records of a journal, or raises the reason for a failure."""
        if isinstance(result, Exception):
            raise result
        self._metrics.taken.inc(result)

    def _tidy(self) -> None:
        self._wait(self._failed)
        self._failed = {}
        for team in self._spool.teams():
            origin = origin_of(team)
            mark_lost(self._database, origin)
            runs = self._spool.home(team) / "runs"
            prune_folders(self._database, runs, before=time.time() - _KEPT_S, origin=origin)
            used = self._spool.used(team)
            with self._lock:
                self._used[team] = used
