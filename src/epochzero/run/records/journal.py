"""The journal of an attempt: its records, one a line, safe on disk within a second.

Each line is the checksum of what follows, a space, and the record's JSON form, in which null stands
for a number that JSON does not have, such as a loss that is NaN. A line that was cut off, because the machine or
the supervisor died, does not match its checksum and is left out. Secrets in the job's command are hidden.
"""

from __future__ import annotations

import json
import math
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from epochzero.errors import InputError, reading
from epochzero.redact import redact_command
from epochzero.run.records.model import Record, Start, record_of, to_dict

NAME = "journal.jsonl"
SYNC_S = 1.0


class Journal:
    """Appends records. Threads may share one; a full disk loses records, never the job.

    Attributes:
        lost: how many records could not be written.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the journal in an attempt's folder, which it makes.

        Raises:
            InputError: the folder or the file cannot be made.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(
                folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise InputError(f"records cannot be written to {folder}: {error.strerror}") from error
        self.path = folder / NAME
        self.lost = 0
        self._end_torn_line()
        self._lock = threading.Lock()
        self._dirty = threading.Event()
        self._closed = threading.Event()
        self._syncing = threading.Thread(target=self._sync_often, name="journal", daemon=True)
        self._syncing.start()

    def write(self, record: Record, *, now: bool = False) -> None:
        """Appends a record; ``now`` returns only when it is safe on disk."""
        line = _line(record)
        with self._lock:
            if not self._append(line):
                self.lost += 1
                return
        if now:
            self._sync()
        else:
            self._dirty.set()

    def close(self) -> None:
        """Makes all that was written safe. Closing twice does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._dirty.set()
        self._syncing.join()
        self._sync()
        os.close(self._file)

    def _end_torn_line(self) -> None:
        """What a killed writer left of its last record must not swallow the next one."""
        with suppress(OSError), open(self.path, "rb") as file:
            if (
                file.seek(0, os.SEEK_END)
                and file.seek(-1, os.SEEK_END) >= 0
                and file.read(1) != b"\n"
            ):
                os.write(self._file, b"\n")

    def _append(self, line: bytes) -> bool:
        """Whether the whole line was written; a part of one is taken back."""
        size = os.fstat(self._file).st_size
        with suppress(OSError):
            if os.write(self._file, line) == len(line):
                return True
        with suppress(OSError):
            os.ftruncate(self._file, size)
        return False

    def _sync_often(self) -> None:
        while not self._closed.is_set():
            self._dirty.wait()
            self._dirty.clear()
            self._sync()
            self._closed.wait(SYNC_S)

    def _sync(self) -> None:
        with suppress(OSError):
            os.fdatasync(self._file)


def read_journal(path: Path, start: int = 0) -> Iterator[tuple[int, Record]]:
    """The whole records of a journal from a byte on, each with the byte after it.

    A last line that is not whole yet is left for a later call; a damaged one is passed over.

    Raises:
        InputError: the journal cannot be read.
    """
    with reading(path), open(path, "rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            if (record := _record(line)) is not None:
                yield start, record


def _line(record: Record) -> bytes:
    if isinstance(record, Start):
        record = replace(record, command=redact_command(record.command))
    values = to_dict(record)
    try:
        text = _json(values)
    except ValueError:
        text = _json(_finite(values))
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    """The same with None for each number that JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _record(line: bytes) -> Record | None:
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    with suppress(ValueError, InputError, RecursionError):
        return record_of(json.loads(text, parse_constant=lambda _: None))
    return None
