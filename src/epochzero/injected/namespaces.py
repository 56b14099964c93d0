"""Own user, mount, process, network, IPC and host-name namespaces, without being root.

There are two user namespaces. The keeper (process 1) owns the outer one and builds the view in it;
the job lives in an inner one, where every mount that it sees is locked: it can take away no
overlay and make nothing writable, even where it runs as root (mount_namespaces(7)).
"""

from __future__ import annotations

import os
from contextlib import suppress

from epochzero.injected import system

_ALL = (
    system.CLONE_NEWNS
    | system.CLONE_NEWPID
    | system.CLONE_NEWNET
    | system.CLONE_NEWIPC
    | system.CLONE_NEWUTS
)
_ALL_USERS = str(2**32 - 1)


def enter() -> bool:
    """Leave all namespaces; the next child is process 1.

    Returns:
        Whether some users are unknown here: this is not the system's own user namespace.

    Raises:
        OSError: the system does not allow it.
    """
    leave(_ALL, os.geteuid(), os.getegid())
    system.loopback_up()
    with open("/proc/self/uid_map", encoding="ascii") as stream:
        return stream.read().split() != ["0", "0", _ALL_USERS]


def leave(flags: int, user: int, group: int) -> None:
    """Leave the namespaces that the flags name, and be a user and group from then on.

    A namespace of users is made only where it must be: nobody else is known in it.

    Args:
        flags: of unshare(2), without ``CLONE_NEWUSER``.
        user, group: numbers by which this process is known; what it owns outside it owns.

    Raises:
        OSError: the system does not allow it.
    """
    own_user, own_group = os.geteuid(), os.getegid()
    if (user, group) == (own_user, own_group):
        with suppress(PermissionError):
            system.unshare(flags)
            return
    system.unshare(system.CLONE_NEWUSER | flags)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {own_user} 1")
    _write("/proc/self/gid_map", f"{group} {own_group} 1")


def step_in(asking: int, answered: int) -> None:
    """Go into the inner user namespace; the keeper, asked through a pipe, says who is who in it."""
    system.unshare(system.CLONE_NEWUSER | system.CLONE_NEWNS)
    os.write(asking, b"?")
    os.read(answered, 1)


def let_in(job: int, asking: int, answered: int) -> None:
    """Give the job's user namespace the same users and groups as this one has."""
    if os.read(asking, 1):
        for kind in ("uid_map", "gid_map"):
            _write(f"/proc/{job}/{kind}", _identity(f"/proc/self/{kind}"))
        with suppress(BrokenPipeError):
            os.write(answered, b"!")


def _identity(path: str) -> str:
    """Each range of a map, onto itself."""
    with open(path, encoding="ascii") as stream:
        ranges = [line.split() for line in stream]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges)


def _write(path: str, text: str) -> None:
    # One write(2): the kernel takes a map as a whole.
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)
