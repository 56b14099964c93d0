"""What a blocked process waits for, as the kernel sees it: what `strace -p` and `lsof` would show.

A stack says that a rank reads; only the kernel says from whom. Sources: proc(5): syscall, fd, net/tcp, wchan;
the tables of system calls of Linux for x86-64 and arm64.
"""

from __future__ import annotations

import os
import platform
import socket
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from epochzero.platform import name_of

# Numbers of system calls whose first argument is a file descriptor, and what they do.
_X86 = {
    0: "reads from", 1: "writes to", 17: "reads from", 18: "writes to", 19: "reads from", 20: "writes to",
    42: "connects", 43: "waits for a connection to", 44: "writes to", 45: "reads from", 46: "writes to",
    47: "reads from", 73: "waits for the lock of", 74: "flushes", 75: "flushes", 288: "waits for a connection to",
}  # fmt: skip
_ARM64 = {
    63: "reads from", 64: "writes to", 67: "reads from", 68: "writes to", 65: "reads from", 66: "writes to",
    203: "connects", 202: "waits for a connection to", 206: "writes to", 207: "reads from", 211: "writes to",
    212: "reads from", 32: "waits for the lock of", 82: "flushes", 83: "flushes", 242: "waits for a connection to",
}  # fmt: skip
_CALLS = {"x86_64": _X86, "aarch64": _ARM64}.get(platform.machine(), {})
_WAIT4, _WAITID = {"x86_64": (61, 247), "aarch64": (260, 95)}.get(platform.machine(), (-2, -2))
_SLEEP_CALLS = {"x86_64": (35, 230), "aarch64": (101, 115)}.get(platform.machine(), ())
# Where the kernel waits -> for what, where no argument of the call tells more.
_PLACES = {
    "wait_for_partner": "opens a named pipe whose other end is not open",
    "fifo_open": "opens a named pipe whose other end is not open",
    "rpc_wait_bit_killable": "waits for an NFS server",
    "nfs_wait_bit_killable": "waits for an NFS server",
    "request_wait_answer": "waits for a FUSE file system",
    "io_schedule": "waits for a disk",
    "folio_wait_bit_common": "waits for a disk",
    "flock_lock_inode_wait": "waits for a file lock",
}
_LISTENS = "0A"
_MOST_CHILDREN = 3
"""A shell that waits for a shell that waits for a tool."""


def sleeps(pid: int) -> bool:
    """Whether the main thread sleeps for a given time, so that it wakes up by itself."""
    return _call(pid)[0] in _SLEEP_CALLS or "nanosleep" in _read(pid, "wchan")


def waits_for(pid: int, others: Iterable[int] = ()) -> str:
    """What the main thread of a process waits for, such as ``reads from a pipe of cat (process 71)``.

    Args:
        pid: of the process.
        others: processes of the job, among which the other end of a pipe is searched.

    Returns:
        Empty if the kernel does not tell, or no more than a stack does.
    """
    return _waits_for(pid, others, _MOST_CHILDREN)


def _waits_for(pid: int, others: Iterable[int], children: int) -> str:
    number, arguments = _call(pid)
    if number in _CALLS and arguments:
        with suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{arguments[0]}")
            if what := _described(pid, target, others):
                return f"{_CALLS[number]} {what}"
    if number in (_WAIT4, _WAITID) and arguments:
        child = arguments[1 if number == _WAITID else 0]
        # A wait for any child has -1 for its number.
        living = [child] if 0 < child < 1 << 22 else _children(pid, others)
        name = name_of(living[0]) if len(living) == 1 else ""
        if not name:
            return ""
        its = _waits_for(living[0], others, children - 1) if children else ""
        which = f", which {its}" if its else " to exit"
        return f"waits for {name} (process {living[0]}){which}"
    return _PLACES.get(_read(pid, "wchan"), "")


def _children(pid: int, others: Iterable[int]) -> list[int]:
    """The processes that a process has started and that are still running."""
    return [
        other
        for other in others
        if (stat := _read(other, "stat").rpartition(")")[2].split()) and int(stat[1]) == pid
    ]


def _call(pid: int) -> tuple[int, Sequence[int]]:
    """Number and arguments of the system call that blocks the main thread; -1 if it is not permitted to know."""
    words = _read(pid, "syscall").split()
    with suppress(ValueError, IndexError):
        return int(words[0]), [int(word, 16) for word in words[1:7]]
    return -1, ()


def _described(pid: int, target: str, others: Iterable[int]) -> str:
    kind, _, inode = target.partition(":")
    if kind == "pipe":
        peers = [other for other in others if other != pid and _holds(other, target)]
        if not peers:
            return "a pipe that no other process of the job has open"
        return f"a pipe of {name_of(peers[0])} (process {peers[0]})"
    if kind == "socket":
        return _connection(pid, inode.strip("[]"))
    return "" if target.startswith("anon_inode") else target


def _holds(pid: int, target: str) -> bool:
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                if os.readlink(entry.path) == target:
                    return True
    return False


def listens(pid: int, port: int) -> bool:
    """Whether a process accepts TCP connections at a port."""
    for table in ("tcp", "tcp6"):
        for line in _read(pid, f"net/{table}").splitlines()[1:]:
            fields = line.split()
            at_port = len(fields) > 9 and int(fields[1].rpartition(":")[2], 16) == port
            if at_port and fields[3] == _LISTENS and _holds(pid, f"socket:[{fields[9]}]"):
                return True
    return False


def _connection(pid: int, inode: str) -> str:
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in _read(pid, f"net/{table}").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[9] == inode:
                return f"the TCP connection to {_address(fields[2], family)}"
    return "a socket"


def _address(text: str, family: socket.AddressFamily) -> str:
    host, _, port = text.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    name = socket.inet_ntop(family, packed).removeprefix("::ffff:")
    return f"[{name}]:{int(port, 16)}" if ":" in name else f"{name}:{int(port, 16)}"


def _read(pid: int, name: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace").strip()
    return ""
