"""Windows: no users, limits and sessions of POSIX; access to files is decided by lists that are not read here."""

from __future__ import annotations

import errno
import getpass
import os
from collections.abc import Iterator, Mapping

from epochzero.platform.model import ProcessStatus, ResourceLimits, SystemUser

NAME = "Windows"
ADOPTS_ORPHANS = False
WHY_NO_JOBS = (
    "epochzero run does not work on Windows, which has no process groups and signals of POSIX: use it within WSL, the"
    " Windows Subsystem for Linux"
)
NO_FOLLOW = DIRECTORY = NON_BLOCKING = 0
BINARY: int = getattr(os, "O_BINARY", 0)
_NO_USER = 0


def lock(descriptor: int) -> None:
    """Locks the first byte of an open file for this process alone, until it is closed.

    Raises:
        BlockingIOError: another process has locked it.
    """
    import msvcrt

    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK)) from error


def unlock(descriptor: int) -> None:
    """Nothing: closing the file ends its lock, because no child process inherits it."""


def user_id() -> int:
    """Zero: users have no numbers."""
    return _NO_USER


def is_private(status: os.stat_result) -> bool:
    """True: access lists decide who may write, and by default those of a profile allow its user alone."""
    return True


def user(environment: Mapping[str, str]) -> SystemUser:
    """Who runs this process."""
    return SystemUser(getpass.getuser(), _NO_USER, _NO_USER, (), environment.get("USERPROFILE", ""))


def resource_limits() -> ResourceLimits:
    """None."""
    return ResourceLimits()


def open_files() -> None:
    """None: there is no limit to be raised."""


def raise_open_files(wanted: int) -> int:
    """How many files may be open: as many as wanted."""
    return wanted


def limit_process(cpu_seconds: float, memory_bytes: int) -> None:
    """Does nothing: time limits of the caller remain."""


def usable_cpus() -> int:
    """How many processors the machine has."""
    return os.cpu_count() or 1


def memory_available() -> None:
    """None: it is not read."""


def adopt_orphans(adopt: bool = True) -> None:
    """Does nothing: no job runs here."""


def processes() -> Iterator[ProcessStatus]:
    """None: no job runs here."""
    return iter(())


def process_status(pid: int) -> None:
    """None: no job runs here."""


def name_of(pid: int) -> str:
    """The number of a process."""
    return str(pid)


def pipe() -> tuple[int, int]:
    """A pipe that is not inherited: the end to read, and the end to write."""
    return os.pipe()
