"""Imports logs from a directory: one file per job, once it stops growing."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

from epochzero.errors import EpochZeroError, InputError
from epochzero.logs.source import Log
from epochzero.run.records.identity import derived_job
from epochzero.store.database import StoreError
from epochzero.web.job_writer import Keeping
from epochzero.web.log_diagnosis import About, Diagnosing
from epochzero.web.spool import Spool

_LOGGER = logging.getLogger("epochzero.web")
_EVERY_S = 5.0
_QUIET_S = 30.0
_LONGEST_NAME = 500
_ENDINGS = (".log", ".out", ".err", ".txt")
_COMPRESSED = (".gz", ".zst")


class WatchedFolder:
    """Periodically imports logs from a directory. Its jobs are local jobs.

    Args:
        folder: directory of the logs; links that lead out of it are ignored.
        most: maximum decompressed size of a log in bytes; longer logs are skipped.
        quiet: seconds since the last change of a file.
    """

    def __init__(
        self,
        folder: Path,
        keeping: Keeping,
        diagnosing: Diagnosing,
        spool: Spool,
        *,
        most: int,
        quiet: float = _QUIET_S,
    ) -> None:
        self._folder = folder
        self._keeping = keeping
        self._diagnosing = diagnosing
        self._spool = spool
        self._most = most
        self._quiet = quiet
        self._done: dict[Path, tuple[float, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="watched", daemon=True)

    def start(self) -> None:
        """Starts; logs that were imported before a restart are in the store."""
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current file."""
        self._ended.set()
        self._thread.join()

    def look(self) -> int:
        """Imports unchanged files; returns their number.

        Raises:
            StoreError: the store cannot be written; the rest is imported later.
        """
        count = 0
        for path in sorted(self._folder.rglob("*")):
            if not _is_log(path):
                continue
            status = path.lstat()
            seen = (status.st_mtime, status.st_size)
            if self._done.get(path) == seen or time.time() - status.st_mtime < self._quiet:
                continue
            try:
                self._keep(path)
                count += 1
            except StoreError:
                raise
            except (EpochZeroError, OSError) as error:
                _LOGGER.warning("%s was not stored: %s", path, error)
            self._done[path] = seen
        return count

    def _work(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                self.look()
            except (StoreError, OSError) as error:
                _LOGGER.error("%s: %s", self._folder, error)

    def _keep(self, path: Path) -> None:
        name = os.fsencode(path.relative_to(self._folder)).decode("utf-8", "replace")
        status = path.stat()
        # The same after a restart; a file that is written again is another job.
        job = derived_job("watched", name, str(status.st_mtime_ns), str(status.st_size))
        about = About(job=job, name=name[-_LONGEST_NAME:], ended=status.st_mtime)
        with self._spool.passing() as log:
            for block in Log(path.name, path).blocks():
                if block.offset + len(block.data) > self._most:
                    raise InputError(f"it exceeds {self._most} bytes")
                log.write(block.data)
            found = self._diagnosing.ending("", about, log)
            self._keeping.keep([found.ending])
            found.close()


def _is_log(path: Path) -> bool:
    suffixes = path.suffixes
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes = suffixes[:-1]
    return bool(suffixes) and suffixes[-1] in _ENDINGS and path.is_file() and not path.is_symlink()
