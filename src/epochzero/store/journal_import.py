"""Takes the journal of a running attempt into the store, beside the job and never in its way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.model import Record
from epochzero.run.watcher import Clock

if TYPE_CHECKING:
    from epochzero.store.database import Database


# Loading the database's library takes a third of a second of the processor: a job that is over in
# no time shall not pay for it.
_AFTER_S = 3.0
_EVERY_S = 2.0
_LONGEST_PAUSE_S = 60.0
_BUSY_S = 5.0
"""A store that others have locked is not waited for any longer: the journal has all."""
_FINISH_S = 60.0
"""What a database needs for the longest logs; one that hangs is left behind."""


class Recording:
    """A watcher (`epochzero.run.watcher.Watcher`) that adds no records.

    What the store does not take now stays in the journal: `finish` or any later sweep takes it in.

    Args:
        address: of the store.
        journal: of the attempt.
    """

    def __init__(self, address: str, journal: Path) -> None:
        self._address = address
        self._journal = journal
        self._database: Database | None = None
        self._next = time.monotonic() + _AFTER_S
        self._pause = _EVERY_S
        self._finished = False
        self.trouble = ""

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """Nothing is done yet."""
        return ()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Output is not its business."""
        return ()

    def tick(self) -> Iterable[Record]:
        """Takes in what is new, from time to time."""
        if time.monotonic() >= self._next:
            self._pause = _EVERY_S if self._took_in() else min(2 * self._pause, _LONGEST_PAUSE_S)
            self._next = time.monotonic() + self._pause
        return ()

    def ended(self) -> Iterable[Record]:
        """The rest comes with `finish`, when all is written."""
        return ()

    def finish(self) -> bool:
        """Takes in the rest; whether the store has all. `trouble` says why it does not."""
        # What hangs in a database must not hold the process.
        finishing = threading.Thread(target=self._finish, daemon=True)
        finishing.start()
        finishing.join(_FINISH_S)
        if finishing.is_alive():
            self.trouble = f"the database did not answer for {_FINISH_S:.0f} s"
        return self._finished

    def _finish(self) -> None:
        self._finished = self._took_in()
        if self._database is not None:
            self._database.close()

    def _took_in(self) -> bool:
        from epochzero.store.database import open_database
        from epochzero.store.recorder import take_in

        try:
            self._database = self._database or open_database(self._address, busy=_BUSY_S)
            take_in(self._database, self._journal)
        except InputError as error:
            self.trouble = str(error)
            return False
        return True
