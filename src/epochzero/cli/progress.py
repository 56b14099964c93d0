"""The progress of a dry run, as one line on standard error that is erased at the end."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType

from epochzero.check.dryrun.records import Record, StartRecord, TrialRecord, VisitRecord

EVERY_S = 0.2


class DryRunProgress:
    """Shows which part of the job is running and for how long; shows nothing if there is no terminal."""

    def __init__(self, doing: str = "reading") -> None:
        """Create the display without showing anything.

        Args:
            doing: activity that is shown until the first record.
        """
        self._doing = doing
        self._shown = sys.stderr.isatty()
        self._began = time.monotonic()
        self._trying = ""
        self._at: dict[int, str] = {}
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> DryRunProgress:
        if self._shown:
            self._clock.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._over.set()
            self._clock.join()
            self._write("")

    def on_record(self, record: Record) -> None:
        """Handle a record of the run; the records of each mode come from a separate thread."""
        if isinstance(record, StartRecord):
            self._at[threading.get_ident()] = "imports"
        elif isinstance(record, TrialRecord):
            self._trying = f"{record.option} {record.value}: "
        elif isinstance(record, VisitRecord):
            self._at[threading.get_ident()] = record.how

    def _tick(self) -> None:
        while not self._over.wait(EVERY_S):
            seconds = time.monotonic() - self._began
            doing = ", ".join(dict.fromkeys(self._at.values())) or self._doing
            self._write(f"{seconds:4.0f} s  {self._trying}{doing}")

    def _write(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[K{text[:width]}")
        sys.stderr.flush()
