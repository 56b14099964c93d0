"""What was received and may not be in the store yet: journals and logs, as they lie at their sender.

    FOLDER/TEAM/runs/JOB/ATTEMPT[-rRANK]/journal.jsonl, output.log, ...

A file grows by pieces that say where they begin. A piece counts whole or not at all, and is safe on disk before it
is acknowledged; one that comes again changes nothing. So a sender needs no memory: it asks how much is
there and continues, whichever of both was killed.

What the store has whole is released: the files keep their sizes, so that a sender that comes late still finds
how much was received, and their content is gone. Of a released file every byte reads as NUL.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from epochzero.errors import InputError
from epochzero.run.identity import attempt_folder
from epochzero.run.journal import NAME

_NOBODY = "_"
"""The folder of this machine's jobs; no team is called so."""
_IN_MEMORY = 256 << 10
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
        """How much is there of each file of an attempt."""
        with suppress(FileNotFoundError):
            return {file.name: file.stat().st_size for file in os.scandir(folder)}
        return {}

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
                with suppress(OSError):
                    status = os.stat(os.path.join(folder, name))
                    # A released file has a size and takes no room.
                    size += min(status.st_size, status.st_blocks * 512)
        return size

    def release(self, folder: Path) -> None:
        """Removes the content of an attempt's files; their sizes stay.

        A file to which somebody is appending at this moment is left as it is.
        """
        with suppress(FileNotFoundError):
            for entry in os.scandir(folder):
                with suppress(OSError):
                    _empty(entry.path)


class Appending:
    """A piece that is being appended to a file; the file is locked for others meanwhile.

    Attributes:
        size: bytes of the file, with what was written of the piece.
    """

    def __init__(self, file: int, offset: int, most: int) -> None:
        self._file = file
        self._at = offset
        self._most = most
        self.begun = self.size = os.fstat(file).st_size
        if offset > self.size:
            raise Gap(f"a piece at {offset} does not follow the {self.size} bytes there", self.size)

    def write(self, data: bytes) -> None:
        """Adds to the piece; what is there already must be equal.

        Raises:
            Gap: it is not.
            Full: the file or the disk is full.
        """
        there = min(len(data), self.size - self._at)
        if there > 0 and not _is_again(os.pread(self._file, there, self._at), data[:there]):
            raise Gap(f"the piece differs from what is there after {self._at}", self.size)
        new = data[max(there, 0) :]
        if self.size + len(new) > self._most:
            raise Full(f"a file has at most {self._most} bytes")
        while new:
            written = os.pwrite(self._file, new, self.size)
            self.size += written
            new = new[written:]
        self._at += len(data)

    def sync(self) -> None:
        """Makes the piece safe on disk."""
        os.fdatasync(self._file)


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
            size = os.fstat(file).st_size
            raise Gap("somebody else is sending this at this moment", size) from error
        piece = Appending(file, offset, most)
        try:
            yield piece
        except BaseException as error:
            os.ftruncate(file, piece.begun)
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise _full(error) from error
            raise
    finally:
        os.close(file)


def _is_again(present: bytes, piece: bytes) -> bool:
    """Whether a piece is what the file has there; what was released is taken to be equal."""
    kept = present.lstrip(b"\0")
    return kept == piece[len(present) - len(kept) :]


def _empty(path: str) -> None:
    """Removes the content of a file and keeps its size.

    Killed in between, it is as if nothing had been received: its sender sends it again.
    """
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(file).st_size
        os.ftruncate(file, 0)
        os.ftruncate(file, size)
    finally:
        os.close(file)


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
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    return file


def _full(error: OSError) -> Full:
    told = FULL if error.errno in _NO_ROOM else f"the service cannot keep it: {error.strerror}"
    return Full(told)
