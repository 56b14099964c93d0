"""Imports the journal of a running attempt into the store without delaying the job."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.model import Record

if TYPE_CHECKING:
    from epochzero.store.database import Database


# Loading the database's library takes a third of a second of the processor: a job that is over in
# no time shall not pay for it.
_AFTER_S = 3.0
_EVERY_S = 2.0
_LONGEST_PAUSE_S = 60.0
_BUSY_S = 5.0
"""Time to wait for a locked store; the journal contains all records in any case."""
_FINISH_S = 60.0
"""Time that a database needs for the longest logs; a database that hangs is abandoned."""


class StoreWatcher(Watcher):
    """A watcher (`epochzero.run.process.watcher.Watcher`) that adds no records.

    Records that the store does not accept now remain in the journal: `finish` or a later sweep imports them.
    """

    def __init__(self, address: str, journal: Path) -> None:
        self._address = address
        self._journal = journal
        self._database: Database | None = None
        self._next = time.monotonic() + _AFTER_S
        self._pause = _EVERY_S
        self._finished = False
        self.trouble = ""

    def tick(self) -> Iterable[Record]:
        """Imports new records from time to time."""
        if time.monotonic() >= self._next:
            self._pause = _EVERY_S if self._took_in() else min(2 * self._pause, _LONGEST_PAUSE_S)
            self._next = time.monotonic() + self._pause
        return ()

    def finish(self) -> bool:
        """Imports the rest; returns whether the store is complete. `trouble` contains the reason if not."""
        # A hanging database must not keep the process alive.
        finishing = threading.Thread(target=self._finish, daemon=True)
        finishing.start()
        finishing.join(_FINISH_S)
        if finishing.is_alive():
            self.trouble = f"the database did not respond for {_FINISH_S:.0f} s"
        return self._finished

    def _finish(self) -> None:
        self._finished = self._took_in()
        if self._database is not None:
            self._database.close()

    def _took_in(self) -> bool:
        try:
            from epochzero.store.database import open_database
            from epochzero.store.recorder import take_in

            self._database = self._database or open_database(self._address, busy=_BUSY_S)
            take_in(self._database, self._journal)
        except InputError as error:
            self.trouble = str(error)
            return False
        except ModuleNotFoundError as error:
            self.trouble = f"it requires {error.name}: pip install 'epochzero[store]'"
            return False
        return True
