"""Holds back what the job does, from inside its Python: where the system offers no namespaces.

What it writes is redirected. The network, and signals to processes that are not the job's, are
refused; an audit hook (PEP 578) also refuses what got past the redirection. Compiled code is not seen,
and programs that the job starts are not.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from types import FrameType
from typing import Any

from epochzero.check.dryrun.child.redirect import HARMLESS, WRITES, redirect

SCRATCH_VARIABLE = "EPOCHZERO_SCRATCH"

# Audit events with the positions of the paths that they change.
_CHANGING_EVENTS = {
    "os.chmod": (0,), "os.chown": (0,), "os.link": (1,), "os.mkdir": (0,), "os.remove": (0,),
    "os.rename": (0, 1), "os.rmdir": (0,), "os.setxattr": (0,), "os.symlink": (1,),
    "os.truncate": (0,), "os.utime": (0,), "sqlite3.connect": (0,),
}  # fmt: skip


def install(
    scratch: str, emit: Callable[[dict[str, Any]], None], is_users: Callable[[str], bool]
) -> None:
    """Redirect and refuse from here on; it cannot be undone.

    Args:
        scratch: a folder that takes what is written, as if it were the root.
        emit: takes the records ``network``, ``spawned`` and ``deleted``.
        is_users: whether the code in a file is the user's.
    """
    temporary = os.path.join(scratch, "tmp")
    os.makedirs(temporary, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = temporary
    redirect(scratch, emit)
    sys.addaudithook(_Auditor(scratch, emit, is_users).on_event)


def listen(emit: Callable[[dict[str, Any]], None], is_users: Callable[[str], bool]) -> None:
    """Only report what the job tries to reach and to start; something else holds it back.

    Args:
        emit: takes the records ``network`` and ``spawned``.
        is_users: whether the code in a file is the user's.
    """
    sys.addaudithook(_Listener(emit, is_users).on_event)


# -- What is heard -----------------------------------------------------------------------------

_STARTING = ("os.exec", "os.posix_spawn", "os.system", "subprocess.Popen")
_REACHING = ("socket.connect", "socket.sendmsg", "socket.sendto")
_RESOLVING = ("socket.getaddrinfo", "socket.gethostbyname")


class _Listener:
    """Reports each address outside that the job contacts and each program that it starts, once."""

    def __init__(
        self, emit: Callable[[dict[str, Any]], None], is_users: Callable[[str], bool]
    ) -> None:
        self.emit = emit
        self.is_users = is_users
        self.reported: set[str] = set()

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if address := _outside(event, arguments):
            self._tell({"kind": "network", "address": address})
        elif event in _STARTING and not self._is_import():
            self._tell({"kind": "spawned", "program": str(arguments[0])[:200]})

    def _is_import(self) -> bool:
        """Whether the import of an installed module is the reason, such as torch's, which starts ldconfig."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not self.is_users(frame.f_code.co_filename):
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def _tell(self, record: dict[str, Any]) -> None:
        text = str(record)
        if text not in self.reported:
            self.reported.add(text)
            self.emit(record)


def _outside(event: str, arguments: tuple[Any, ...]) -> str:
    """The address or host beyond this machine that an event is about; empty where it is about none."""
    if event in _REACHING:
        address = arguments[-1]
        # A path or an abstract name is that of a process of this machine; None is connected.
        if isinstance(address, tuple) and not _is_here(address[0]):
            return f"{address[0]}:{address[1]}"
    elif event in _RESOLVING:
        host = arguments[0]
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        if name and not _is_here(name) and not _is_address(name):
            return str(name)[:200]
    return ""


# -- Refusal -----------------------------------------------------------------------------------


class _Auditor(_Listener):
    """Refuses what would reach outside."""

    def __init__(
        self,
        scratch: str,
        emit: Callable[[dict[str, Any]], None],
        is_users: Callable[[str], bool],
    ) -> None:
        super().__init__(emit, is_users)
        self.allowed = (*HARMLESS, scratch + "/")

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        super().on_event(event, arguments)
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES:
                self._changing(path)
        elif event in _CHANGING_EVENTS:
            for position in _CHANGING_EVENTS[event]:
                self._changing(arguments[position])
        elif event in ("os.kill", "os.killpg"):
            _signaling(arguments[0], group=event == "os.killpg")
        elif _outside(event, arguments):
            if event in _RESOLVING:
                raise socket.gaierror(socket.EAI_AGAIN, "No names are resolved in a dry run")
            raise OSError(errno.ENETUNREACH, "Network is unreachable in a dry run")

    def _changing(self, path: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        text = os.fsdecode(path)
        whole = os.path.normpath(text) if text.startswith("/") else os.path.abspath(text)
        if text != ":memory:" and not whole.startswith(self.allowed):
            raise PermissionError(errno.EPERM, "Not changed in a dry run", text)


def _is_here(host: str) -> bool:
    if host in ("", "localhost", socket.gethostname()):
        return True
    if not _is_address(host):
        return False
    address = ipaddress.ip_address(host)
    return address.is_loopback or address.is_unspecified


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _signaling(number: int, group: bool) -> None:
    """Only the job's own session may be signaled."""
    try:
        own = number == 0 or (number > 0 and os.getsid(number) == os.getsid(0))
    except OSError:
        return  # there is none: the call itself will say so
    if not own:
        kind = "process group" if group else "process"
        raise PermissionError(errno.EPERM, f"A {kind} outside the job is not signaled in a dry run")
