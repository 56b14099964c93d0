"""Received data that may not be in the store yet: journals, and redacted logs.

    FOLDER/TEAM/runs/JOB/ATTEMPT[-rRANK]/journal.jsonl, output.log, output.log.received, ...

Files grow by parts with offsets. A part is stored completely or not at all, and is synced to disk before it
is acknowledged; a repeated part changes nothing. A sender therefore needs no state: it asks for the stored size
and continues, whichever side was killed.

Senders count the bytes of the original log, while the stored file has another size. Each log therefore has a record
next to it: bytes received, bytes finally redacted, and the unfinished end as received. The record is replaced
atomically after the log is synced: data that a killed server wrote beyond its record are overwritten.

Completely stored data are released: the number of received bytes remains, so that a late sender can continue,
and the content is deleted. Every byte of a released journal reads as NUL.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, NamedTuple, Protocol

from epochzero.errors import InputError
from epochzero.platform import BINARY, NO_FOLLOW, lock, unlock
from epochzero.redact import HIDDEN, redact_log
from epochzero.run.records.identity import attempt_folder
from epochzero.run.records.journal import NAME
from epochzero.web.log_redaction import HELD_MOST, Unfinished, redact_piece

_NOBODY = "_"
"""The directory of local jobs; not a valid team name."""
_IN_MEMORY = 256 << 10
_LEAST_ROOM = 1 << 20
_RECORD = ".received"
_NEW_RECORD = ".received.new"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL = (
    "the disk of the service is full: this request was not stored; acknowledged data are safe. Send it "
    "again after the operator has freed space (epochzero jobs prune)"
)


class Gap(InputError):  # noqa: N818 - it is what it is called
    """A part does not continue the stored data, or differs from them.

    Attributes:
        size: number of stored bytes.
    """

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size


class Busy(Gap):
    """Another client is appending to the file, or the file is being released, which takes a moment."""


class Full(InputError):  # noqa: N818
    """No space is left; acknowledged data are safe."""


@dataclass(frozen=True, slots=True)
class Spool:
    """The directory of all teams."""

    folder: Path

    def make_private(self) -> None:
        """Restricts the directory to the service's account, including one created by an earlier version.

        Raises:
            InputError: it cannot be created, or belongs to another account.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if stat.S_IMODE(os.stat(self.folder).st_mode) & 0o077:
                os.chmod(self.folder, 0o700)
        except OSError as error:
            raise InputError(
                f"{self.folder}: logs cannot be received here: {error.strerror}; it must be a directory owned by the "
                "service's account"
            ) from error

    def check_room(self) -> None:
        """Writes a mebibyte and deletes it.

        Raises:
            Full: no space is left.
        """
        try:
            with TemporaryFile(dir=str(self.folder)) as file:
                file.write(bytes(_LEAST_ROOM))
                file.flush()
        except OSError as error:
            raise full(error) from error

    def home(self, team: str) -> Path:
        """The directory of a team, with the layout of EPOCHZERO_HOME."""
        return self.folder / (team or _NOBODY)

    def attempt(self, team: str, job: str, attempt: int, rank: int | None) -> Path:
        """The directory of one attempt; the names must have been validated."""
        return attempt_folder(self.home(team), job, attempt, rank)

    def sizes(self, folder: Path) -> Mapping[str, int]:
        """Received bytes of each file of an attempt."""
        with suppress(FileNotFoundError):
            return {
                file.name: file.stat().st_size if file.name == NAME else _received(file.path).size
                for file in os.scandir(folder)
                if not file.name.endswith((_RECORD, _NEW_RECORD))
            }
        return {}

    def recover(self, team: str) -> None:
        """Discards unacknowledged data that a killed server wrote to the logs of a team."""
        for record in (self.home(team) / "runs").glob(f"*/*/*{_RECORD}"):
            with suppress(OSError):
                path = str(record).removesuffix(_RECORD)
                with suppress(FileNotFoundError):
                    os.unlink(path + _NEW_RECORD)
                with _locked(path) as file:
                    _end_with(file, _received(path))

    def teams(self) -> Iterator[str]:
        """The teams that have sent data."""
        with suppress(FileNotFoundError):
            for entry in sorted(os.listdir(self.folder)):
                yield "" if entry == _NOBODY else entry

    def journals(self, team: str) -> Iterator[Path]:
        """The journals of a team."""
        yield from sorted((self.home(team) / "runs").glob(f"*/*/{NAME}"))

    @contextmanager
    def passing(self) -> Iterator[IO[bytes]]:
        """An unnamed temporary file; small content is kept in memory.

        Raises:
            Full: no space is left.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with SpooledTemporaryFile(_IN_MEMORY, dir=str(self.folder)) as file:
                yield file
        except OSError as error:
            raise full(error) from error

    def used(self, team: str) -> int:
        """Bytes that a team uses."""
        size = 0
        for folder, _, names in os.walk(self.home(team)):
            for name in names:
                if name.endswith(_RECORD):
                    continue  # The held-back bytes are counted with the log.
                with suppress(OSError):
                    status = os.stat(os.path.join(folder, name))
                    # A released file has a size but uses no space.
                    size += min(status.st_size, status.st_blocks * 512)
        return size

    def release(self, folder: Path, size: int) -> None:
        """Deletes the content of an attempt's files; the numbers of received bytes remain.

        Logs that are being appended to are left unchanged.

        Args:
            folder: of the attempt.
            size: bytes of its journal that are stored; if it has grown meanwhile, nothing is deleted.
        """
        with suppress(OSError), _locked(str(folder / NAME)) as journal:
            status = os.fstat(journal)
            if status.st_size != size:
                return
            if status.st_blocks:  # Not released yet.
                # If it is killed in between, nothing counts as received and the sender sends the file again.
                os.ftruncate(journal, 0)
                os.ftruncate(journal, size)
        for record in folder.glob(f"*{_RECORD}"):
            with suppress(OSError):
                _empty_log(str(record).removesuffix(_RECORD))


class _Target(Protocol):
    """A file that is appended to."""

    @property
    def size(self) -> int:
        """Number of received bytes."""

    def is_again(self, data: bytes, at: int) -> bool:
        """Whether a part equals the stored data at an offset."""

    def add(self, data: bytes) -> None:
        """Appends new data."""

    def sync(self) -> None:
        """Syncs the appended data to disk."""

    def undo(self) -> None:
        """Discards the appended data."""


class Appending:
    """A part that is being appended to a file, which is locked meanwhile.

    Attributes:
        begun: number of bytes received before.
    """

    def __init__(self, target: _Target, offset: int, most: int) -> None:
        self._target = target
        self._at = offset
        self._most = most
        self.begun = target.size
        if offset > self.size:
            raise Gap(
                f"a part at offset {offset} does not continue the {self.size} stored bytes",
                self.size,
            )

    @property
    def size(self) -> int:
        """Number of received bytes, including the part."""
        return self._target.size

    def write(self, data: bytes) -> None:
        """Adds to the part; bytes that are already stored must be equal.

        Raises:
            Gap: they differ.
            Full: the file or the disk is full.
        """
        there = max(0, min(len(data), self.size - self._at))
        if there and not self._target.is_again(data[:there], self._at):
            raise Gap(f"the part differs from the stored data after offset {self._at}", self.size)
        if self.size + len(data) - there > self._most:
            raise Full(f"the file exceeds {self._most} bytes")
        self._target.add(data[there:])
        self._at += len(data)

    def sync(self) -> None:
        """Syncs the part to disk."""
        self._target.sync()


class _JournalFile:
    """A journal, stored as received, since each line has a checksum."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._begun = self.size = os.fstat(file).st_size

    def is_again(self, data: bytes, at: int) -> bool:
        present = os.pread(self._file, len(data), at)
        stored = present.lstrip(b"\0")  # Released data are assumed to be equal.
        return stored == data[len(present) - len(stored) :]

    def add(self, data: bytes) -> None:
        _write(self._file, data, self.size)
        self.size += len(data)

    def sync(self) -> None:
        os.fdatasync(self._file)

    def undo(self) -> None:
        os.ftruncate(self._file, self._begun)


class _ReceivedLog(NamedTuple):
    """The record of a log.

    Attributes:
        size: bytes received.
        redacted: bytes of the file that are final; after them follows the provisionally redacted end.
        released: number of received bytes that the file no longer contains.
        end: received bytes that are not redacted yet.
    """

    size: int = 0
    redacted: int = 0
    released: int = 0
    end: Unfinished = Unfinished()


class _LogFile:
    """A log, stored redacted, and its record."""

    def __init__(self, path: str, file: int) -> None:
        self._path = path
        self._file = file
        self._begun = self._now = _received(path)

    @property
    def size(self) -> int:
        return self._now.size

    def is_again(self, data: bytes, at: int) -> bool:
        """Compares as far as possible: a line with redacted text is assumed to be equal."""
        now = self._now
        border = now.size - len(now.end.held)
        old, late = data[: max(0, border - at)], data[max(0, border - at) :]
        begin = max(0, at - border)
        if late != now.end.held[begin : begin + len(late)]:
            return False
        sent = redact_log(old).split(b"\n")
        length = sum(map(len, sent)) + len(sent) + HELD_MOST
        if at == now.released == 0:
            present = os.pread(self._file, min(length, now.redacted), 0)
            return _agree(present.split(b"\n"), sent, bytes.startswith)
        if at + len(old) < border:
            return True
        begin = max(0, now.redacted - length)
        present = os.pread(self._file, now.redacted - begin, begin)
        return _agree(present.split(b"\n")[::-1], sent[::-1], bytes.endswith)

    def add(self, data: bytes) -> None:
        redacted, end = redact_piece(self._now.end, data)
        _write(self._file, redacted, self._now.redacted)
        self._now = self._now._replace(
            size=self._now.size + len(data), redacted=self._now.redacted + len(redacted), end=end
        )

    def sync(self) -> None:
        _end_with(self._file, self._now)
        os.fdatasync(
            self._file
        )  # Before the record, which must not count bytes that are not stored.
        _record(self._path, self._now)

    def undo(self) -> None:
        _end_with(self._file, self._begun)


@contextmanager
def appending(path: Path, offset: int, *, most: int) -> Iterator[Appending]:
    """Appends a part to a file, discarding it on an error.

    Args:
        path: of the file, created with its directories if it does not exist.
        offset: of the part in the file.
        most: maximum size of the file in bytes.

    Raises:
        Gap: the part does not continue the stored data.
        Busy: another client is appending.
        Full: no space is left.
    """
    file = _opened(path)
    try:
        try:
            lock(file)
        except BlockingIOError as error:
            size = os.fstat(file).st_size if path.name == NAME else _received(str(path)).size
            raise Busy("another client is sending this file now", size) from error
        target: _Target = _JournalFile(file) if path.name == NAME else _LogFile(str(path), file)
        piece = Appending(target, offset, most)
        try:
            yield piece
        except BaseException as error:
            target.undo()
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise full(error) from error
            raise
    finally:
        _close(file)


def _write(file: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(file, data, at)
        at += written
        data = data[written:]


def _agree(
    stored: Sequence[bytes], sent: Sequence[bytes], is_part: Callable[[bytes, bytes], bool]
) -> bool:
    """Whether lines equal the stored ones, up to the first with redacted text.

    Args:
        stored: lines of the file, from the offset at which both are aligned.
        sent: redacted lines; the last may be truncated.
        is_part: whether a stored line may be truncated.
    """
    for number, (first, second) in enumerate(zip(stored, sent, strict=False), 1):
        if first == second:
            continue
        if HIDDEN.encode() in first or HIDDEN.encode() in second:
            return True
        if number not in (len(sent), len(stored)) or not (
            is_part(first, second) or is_part(second, first)
        ):
            return False
    return True


def _received(path: str) -> _ReceivedLog:
    """The record of a log; without a record, nothing counts as received.

    A log that an earlier version stored unredacted is therefore sent again by the sender of a running job.
    """
    try:
        with open(path + _RECORD, "rb") as file:
            size, redacted, released, hides = map(int, file.readline().split())
            return _ReceivedLog(size, redacted, released, Unfinished(file.read(), bool(hides)))
    except FileNotFoundError:
        return _ReceivedLog()


def _record(path: str, now: _ReceivedLog) -> None:
    """Replaces the record of a log atomically and syncs it."""
    new = os.open(
        path + _NEW_RECORD,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY | NO_FOLLOW,
        0o600,
    )
    try:
        head = b"%d %d %d %d\n" % (now.size, now.redacted, now.released, now.end.hides)
        _write(new, head + now.end.held, 0)
        os.fdatasync(new)
    finally:
        os.close(new)
    os.replace(path + _NEW_RECORD, path + _RECORD)
    _sync_folder(os.path.dirname(path))


def _end_with(file: int, now: _ReceivedLog) -> None:
    """Truncates a log to its record, with the end redacted as far as possible."""
    end = redact_log(now.end.held)
    _write(file, end, now.redacted)
    os.ftruncate(file, now.redacted + len(end))


@contextmanager
def _locked(path: str) -> Iterator[int]:
    """A file of the spool, if no client is appending to it."""
    file = os.open(path, os.O_RDWR | BINARY | NO_FOLLOW)
    try:
        lock(file)
        yield file
    finally:
        _close(file)


def _close(file: int) -> None:
    """Closes a locked file. A process that is being started may still hold a copy, which would keep the lock."""
    unlock(file)
    os.close(file)


def _empty_log(path: str) -> None:
    """Deletes the content of a log and its unfinished end; the number of received bytes remains."""
    with _locked(path) as file:
        size, _, _, end = _received(path)
        # A secret that starts in the end must not continue in clear text.
        hides = end.hides or bool(end.held)
        _record(path, _ReceivedLog(size, 0, size, Unfinished(hides=hides)))
        os.ftruncate(file, 0)


def _opened(path: Path) -> int:
    """Opens the file; the directory entry of a new file is synced."""
    try:
        there = path.exists()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | BINARY | NO_FOLLOW, 0o600)
    except OSError as error:
        raise full(error) from error
    if not there:
        for folder in list(path.parents)[:4]:
            _sync_folder(folder)
    return file


def _sync_folder(folder: str | Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def full(error: OSError) -> Full:
    """The error that a sender gets if data cannot be stored."""
    reason = (
        FULL if error.errno in _NO_ROOM else f"the service cannot store the data: {error.strerror}"
    )
    return Full(reason)
