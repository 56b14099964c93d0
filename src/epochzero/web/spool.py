"""What was received and may not be in the store yet: journals, and redacted logs.

    FOLDER/TEAM/runs/JOB/ATTEMPT[-rRANK]/journal.jsonl, output.log, output.log.received, ...

A file grows by pieces that say where they begin. A piece counts whole or not at all, and is safe on disk before it
is acknowledged; one that comes again changes nothing. So a sender needs no memory: it asks how much is
there and continues, whichever of both was killed.

Senders count the bytes of the log as it was written, and the file has other sizes. So each log has a record next to
it: bytes received, bytes redacted for good, and the unfinished end as it arrived. The record replaces the one before
at once, after the log is safe on disk: what a killed server had written beyond its record is overwritten.

What the store has whole is released: the number of bytes received stays, so that a sender that comes late still
finds it, and the content is gone. Of a released journal every byte reads as NUL.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple, Protocol

from epochzero.errors import InputError
from epochzero.redact import HIDDEN, redact_log
from epochzero.run.identity import attempt_folder
from epochzero.run.journal import NAME
from epochzero.web.log_redaction import HELD_MOST, Unfinished, redact_piece

_NOBODY = "_"
"""The folder of this machine's jobs; no team is called so."""
_IN_MEMORY = 256 << 10
_RECORD = ".received"
_NEW_RECORD = ".received.new"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL = (
    "the disk of the service is full: nothing of this was kept, and nothing lost that was acknowledged. "
    "Send it again when its operator has made room (epochzero jobs prune)"
)


class Gap(InputError):  # noqa: N818 - it is what it is called
    """A piece does not follow what is there, or is not equal to it.

    Attributes:
        size: bytes that are there.
    """

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size


class Full(InputError):  # noqa: N818
    """There is no room; what was acknowledged is safe."""


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder of all teams."""

    folder: Path

    def make_private(self) -> None:
        """Lets only the account of the service enter the directory, also one that an earlier version made.

        Raises:
            InputError: it cannot be made, or belongs to another account.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if stat.S_IMODE(os.stat(self.folder).st_mode) & 0o077:
                os.chmod(self.folder, 0o700)
        except OSError as error:
            raise InputError(
                f"{self.folder}: logs cannot be received there: {error.strerror}; "
                "it must be a directory that belongs to the account of the service"
            ) from error

    def home(self, team: str) -> Path:
        """The folder of a team, laid out as a home of EpochZero."""
        return self.folder / (team or _NOBODY)

    def attempt(self, team: str, job: str, attempt: int, rank: int | None) -> Path:
        """The folder of one attempt; its words must have been checked."""
        return attempt_folder(self.home(team), job, attempt, rank)

    def sizes(self, folder: Path) -> Mapping[str, int]:
        """Bytes that were received of each file of an attempt."""
        with suppress(FileNotFoundError):
            return {
                file.name: file.stat().st_size if file.name == NAME else _received(file.path).size
                for file in os.scandir(folder)
                if not file.name.endswith((_RECORD, _NEW_RECORD))
            }
        return {}

    def recover(self, team: str) -> None:
        """Takes back what a killed server had written to the logs of a team and not acknowledged."""
        for record in (self.home(team) / "runs").glob(f"*/*/*{_RECORD}"):
            with suppress(OSError):
                path = str(record).removesuffix(_RECORD)
                with suppress(FileNotFoundError):
                    os.unlink(path + _NEW_RECORD)
                with _locked(path) as file:
                    _end_with(file, _received(path))

    def teams(self) -> Iterator[str]:
        """Those that have sent something."""
        with suppress(FileNotFoundError):
            for entry in sorted(os.listdir(self.folder)):
                yield "" if entry == _NOBODY else entry

    def journals(self, team: str) -> Iterator[Path]:
        """The journals of a team."""
        yield from sorted((self.home(team) / "runs").glob(f"*/*/{NAME}"))

    @contextmanager
    def passing(self) -> Iterator[IO[bytes]]:
        """A file without a name, for what does not stay; as long as it is short it is in memory.

        Raises:
            Full: there is no room.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with SpooledTemporaryFile(_IN_MEMORY, dir=str(self.folder)) as file:
                yield file
        except OSError as error:
            raise _full(error) from error

    def used(self, team: str) -> int:
        """Bytes that a team has here."""
        size = 0
        for folder, _, names in os.walk(self.home(team)):
            for name in names:
                if name.endswith(_RECORD):
                    continue  # What it holds back is counted with its log.
                with suppress(OSError):
                    status = os.stat(os.path.join(folder, name))
                    # A released file has a size and takes no room.
                    size += min(status.st_size, status.st_blocks * 512)
        return size

    def release(self, folder: Path) -> None:
        """Removes the content of an attempt's files; the numbers of bytes received stay.

        A file to which somebody is appending at this moment is left as it is.
        """
        with suppress(FileNotFoundError):
            for entry in os.scandir(folder):
                with suppress(OSError):
                    if entry.name == NAME:
                        _empty(entry.path)
                    elif entry.name.endswith(_RECORD):
                        _empty_log(entry.path.removesuffix(_RECORD))


class _Target(Protocol):
    """A file that is appended to."""

    @property
    def size(self) -> int:
        """Bytes that were received of it."""

    def is_again(self, data: bytes, at: int) -> bool:
        """Whether a piece is what was received at a place."""

    def add(self, data: bytes) -> None:
        """Adds what is new."""

    def sync(self) -> None:
        """Makes what was added safe on disk."""

    def undo(self) -> None:
        """Takes back what was added."""


class Appending:
    """A piece that is being appended to a file; the file is locked for others meanwhile.

    Attributes:
        begun: bytes that had been received of the file.
    """

    def __init__(self, target: _Target, offset: int, most: int) -> None:
        self._target = target
        self._at = offset
        self._most = most
        self.begun = target.size
        if offset > self.size:
            raise Gap(f"a piece at {offset} does not follow the {self.size} bytes there", self.size)

    @property
    def size(self) -> int:
        """Bytes received of the file, with what was written of the piece."""
        return self._target.size

    def write(self, data: bytes) -> None:
        """Adds to the piece; what is there already must be equal.

        Raises:
            Gap: it is not.
            Full: the file or the disk is full.
        """
        there = max(0, min(len(data), self.size - self._at))
        if there and not self._target.is_again(data[:there], self._at):
            raise Gap(f"the piece differs from what is there after {self._at}", self.size)
        if self.size + len(data) - there > self._most:
            raise Full(f"a file has at most {self._most} bytes")
        self._target.add(data[there:])
        self._at += len(data)

    def sync(self) -> None:
        """Makes the piece safe on disk."""
        self._target.sync()


class _JournalFile:
    """A journal: its bytes are stored as they arrive, since each line has a checksum."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._begun = self.size = os.fstat(file).st_size

    def is_again(self, data: bytes, at: int) -> bool:
        present = os.pread(self._file, len(data), at)
        stored = present.lstrip(b"\0")  # What was released is taken to be equal.
        return stored == data[len(present) - len(stored) :]

    def add(self, data: bytes) -> None:
        _write(self._file, data, self.size)
        self.size += len(data)

    def sync(self) -> None:
        os.fdatasync(self._file)

    def undo(self) -> None:
        os.ftruncate(self._file, self._begun)


class _Received(NamedTuple):
    """The record of a log.

    Attributes:
        size: bytes received.
        redacted: bytes of the file that stay as they are; after them comes the end as it can be redacted now.
        released: of the bytes received, how many the file does not have any more.
        end: what of the bytes received is not among these.
    """

    size: int = 0
    redacted: int = 0
    released: int = 0
    end: Unfinished = Unfinished()


class _LogFile:
    """A log, of which only redacted bytes are stored, and its record."""

    def __init__(self, path: str, file: int) -> None:
        self._path = path
        self._file = file
        self._begun = self._now = _received(path)

    @property
    def size(self) -> int:
        return self._now.size

    def is_again(self, data: bytes, at: int) -> bool:
        """As far as that can still be known: a line in which something is hidden is taken to be equal."""
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
        )  # Before the record: it must not speak of bytes that are not there.
        _record(self._path, self._now)

    def undo(self) -> None:
        _end_with(self._file, self._begun)


@contextmanager
def appending(path: Path, offset: int, *, most: int) -> Iterator[Appending]:
    """Appends a piece to a file; none of it is left after an error.

    Args:
        path: of the file, made with its folders where it is not there.
        offset: where in the file the piece begins.
        most: bytes that the file may have.

    Raises:
        Gap: the piece does not follow what is there, or somebody else appends at this moment.
        Full: there is no room.
    """
    file = _opened(path)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            size = os.fstat(file).st_size if path.name == NAME else _received(str(path)).size
            raise Gap("somebody else is sending this at this moment", size) from error
        target: _Target = _JournalFile(file) if path.name == NAME else _LogFile(str(path), file)
        piece = Appending(target, offset, most)
        try:
            yield piece
        except BaseException as error:
            target.undo()
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise _full(error) from error
            raise
    finally:
        os.close(file)


def _write(file: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(file, data, at)
        at += written
        data = data[written:]


def _agree(
    stored: Sequence[bytes], sent: Sequence[bytes], is_part: Callable[[bytes, bytes], bool]
) -> bool:
    """Whether lines are those that were stored, up to the first in which something is hidden.

    Args:
        stored: lines of the file, from the place on where both are aligned.
        sent: lines that are redacted; the last may be cut.
        is_part: whether a stored line may be one that is cut.
    """
    for number, (one, other) in enumerate(zip(stored, sent, strict=False), 1):
        if one == other:
            continue
        if HIDDEN.encode() in one or HIDDEN.encode() in other:
            return True
        if number not in (len(sent), len(stored)) or not (
            is_part(one, other) or is_part(other, one)
        ):
            return False
    return True


def _received(path: str) -> _Received:
    """The record of a log; of one without a record nothing was received.

    So a log that an earlier version stored as it was written is sent again by the sender of a running job.
    """
    try:
        with open(path + _RECORD, "rb") as file:
            size, redacted, released, hides = map(int, file.readline().split())
            return _Received(size, redacted, released, Unfinished(file.read(), bool(hides)))
    except FileNotFoundError:
        return _Received()


def _record(path: str, now: _Received) -> None:
    """Replaces the record of a log at once, and makes it safe on disk."""
    new = os.open(
        path + _NEW_RECORD,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
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


def _end_with(file: int, now: _Received) -> None:
    """Lets a log end as its record says, with the end redacted as far as it is known."""
    end = redact_log(now.end.held)
    _write(file, end, now.redacted)
    os.ftruncate(file, now.redacted + len(end))


@contextmanager
def _locked(path: str) -> Iterator[int]:
    """A file of the spool, if nobody appends to it at this moment."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file
    finally:
        os.close(file)


def _empty_log(path: str) -> None:
    """Removes the content of a log and its unfinished end; the number of bytes received stays."""
    with _locked(path) as file:
        size, _, _, end = _received(path)
        # A secret that the end has begun must not continue in clear text.
        hides = end.hides or bool(end.held)
        _record(path, _Received(size, 0, size, Unfinished(hides=hides)))
        os.ftruncate(file, 0)


def _empty(path: str) -> None:
    """Removes the content of a file and keeps its size.

    Killed in between, it is as if nothing had been received: its sender sends it again.
    """
    with _locked(path) as file:
        size = os.fstat(file).st_size
        os.ftruncate(file, 0)
        os.ftruncate(file, size)


def _opened(path: Path) -> int:
    """The file; one that is new is in its folder also after a crash."""
    try:
        there = path.exists()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _full(error) from error
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


def _full(error: OSError) -> Full:
    told = FULL if error.errno in _NO_ROOM else f"the service cannot keep it: {error.strerror}"
    return Full(told)
