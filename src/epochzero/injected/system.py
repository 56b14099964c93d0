"""The calls of Linux that Python 3.11 has no name for.

Sources: the manual pages unshare(2), mount(2), mount_setattr(2), pivot_root(2), prctl(2), seccomp(2), landlock(7).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_BIND = 0x1000
MS_REC = 0x4000
MS_UNBINDABLE = 0x20000
MS_PRIVATE = 0x40000

_MNT_DETACH = 2
_MOUNT_SETATTR = 442  # the same number on every architecture, as all since Linux 5.1
_MOUNT_ATTR_RDONLY = 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
# Of each machine the number in AUDIT_ARCH_* and that of sched_setaffinity.
_SET_AFFINITY = {"x86_64": (0xC000003E, 203), "aarch64": (0xC00000B7, 122)}
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_KILL = 9

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def invoke(number: int, *arguments: object) -> int:
    """A system call by its number.

    Raises:
        OSError: the system refuses it.
    """
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), f"system call {number}")


def unshare(flags: int) -> None:
    """Leave the namespaces that the flags name for new ones.

    Raises:
        OSError: the system does not let this process have them.
    """
    _checked(_libc.unshare(flags), "unshare")


def attach(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or with ``MS_BIND`` a folder or file, on a target.

    Raises:
        OSError: the system refuses it.
    """
    texts = [os.fsencode(text) or None for text in (source, target, kind)]
    result = _libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _checked(result, f"mount {kind or 'bind'} on {target}")


def detach(target: str) -> None:
    """Unmount now for all that look for it, later for those that still use it."""
    _checked(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"umount {target}")


def read_only(target: str) -> None:
    """Make a mount and all below it read-only (Linux 5.12).

    Raises:
        OSError: the system refuses it or is older.
    """
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    invoke(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, size)


def pivot(root: str) -> None:
    """Make a mount the root of this mount namespace, and let go of the old root.

    Raises:
        OSError: the system refuses it, or is one whose number for the call is not known here.
    """
    machine = os.uname().machine
    if machine not in _PIVOT_ROOT:
        raise OSError(f"pivot_root has no known number on {machine}")
    os.chdir(root)
    invoke(_PIVOT_ROOT[machine], b".", b".")
    # The old root now lies on the new one, and "." is what it covers.
    detach(".")
    os.chdir("/")


def end_with_parent() -> None:
    """Be killed when the process that started this one is gone."""
    _control(_PR_SET_PDEATHSIG, _KILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parents end, as daemons wish for."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def give_up_privileges() -> None:
    """Nothing that is executed from here on gains rights, by setuid or otherwise."""
    _control(_PR_SET_NO_NEW_PRIVS, 1)


def ignore_affinity() -> None:
    """From now on this process and its children stay on their processors: `taskset` has no effect.

    A cgroup with a cpuset does the same for processors outside it.

    Raises:
        OSError: the system has no such filters, or none for this machine is known.
    """
    machine = os.uname().machine
    if machine not in _SET_AFFINITY:
        raise OSError(errno.ENOSYS, f"no filter for {machine}")
    architecture, number = _SET_AFFINITY[machine]
    # Load the architecture and then the number of the call; if both are equal, it returns 0 and does nothing.
    program = [(0x20, 0, 0, 4), (0x15, 0, 3, architecture), (0x20, 0, 0, 0), (0x15, 0, 1, number)]
    program += [(0x06, 0, 0, 0x00050000), (0x06, 0, 0, 0x7FFF0000)]  # SECCOMP_RET_ERRNO, _ALLOW
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    # struct sock_fprog, whose pointer is aligned.
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0) < 0:
        give_up_privileges()
        _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0), "seccomp")


def _control(option: int, value: int) -> None:
    # Other systems have no such call, and the least containment does without.
    if hasattr(_libc, "prctl"):
        _checked(_libc.prctl(option, value, 0, 0, 0), "prctl")


def loopback_up() -> None:
    """Give a new network namespace its own 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
