"""What Linux and macOS share."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Mapping

from epochzero.platform.model import ResourceLimits, SystemUser

NO_FOLLOW, DIRECTORY, NON_BLOCKING = os.O_NOFOLLOW, os.O_DIRECTORY, os.O_NONBLOCK
BINARY = 0
"""Of `os.open`: on Windows, bytes are changed without it."""
WHY_NO_JOBS = ""


def lock(descriptor: int) -> None:
    """Locks an open file for this process alone, until it is closed.

    Raises:
        BlockingIOError: another process has locked it.
    """
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(descriptor: int) -> None:
    """Ends the lock of an open file, also for copies that child processes have inherited."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def user_id() -> int:
    """The number of the user whose rights this process has."""
    return os.geteuid()


def is_private(status: os.stat_result) -> bool:
    """Whether a file belongs to this user, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def user(environment: Mapping[str, str]) -> SystemUser:
    """Who runs this process; in a container often a number without a name."""
    import grp
    import pwd

    uid, gid = os.getuid(), os.getgid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        entry = None

    def group(number: int) -> str:
        try:
            return grp.getgrgid(number).gr_name
        except KeyError:
            return str(number)

    home = environment.get("HOME") or (entry.pw_dir if entry else "")
    groups = tuple(map(group, sorted({gid, *os.getgroups()})))
    return SystemUser(entry.pw_name if entry else "", uid, gid, groups, home)


def resource_limits() -> ResourceLimits:
    """The limits of ``ulimit``, and the memory of the machine where the system reports it."""
    import resource

    def soft(kind: int) -> int | None:
        value, _ = resource.getrlimit(kind)
        return None if value == resource.RLIM_INFINITY else value

    return ResourceLimits(
        soft(resource.RLIMIT_AS),
        soft(resource.RLIMIT_NPROC),
        soft(resource.RLIMIT_NOFILE),
        _physical_memory(),
    )


def open_files() -> int | None:
    """The hard limit of open files; None where there is none."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard


def raise_open_files(wanted: int) -> int:
    """Raises the limit of open files as far as allowed; returns how many may be open, ``wanted`` at least if possible."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def limit_process(cpu_seconds: float, memory_bytes: int) -> None:
    """Limits what this process may still use: processor time from now on (0: no limit), and memory of its own.

    The kernel terminates the process (SIGPROF) when its time is used up.
    """
    import resource

    # RLIMIT_CPU has a resolution of a second.
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def pipe() -> tuple[int, int]:
    """A pipe that neither blocks nor is inherited: the end to read, and the end to write."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
