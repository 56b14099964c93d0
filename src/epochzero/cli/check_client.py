"""Lets a running ``epochzero check --serve`` carry out a check.

A server is started by the user who asks it, and answers only a process that differs from it in nothing that
could change the answer: program, Python, user, limits. Otherwise the check runs in this process, as without
a server.

A connection is one check: `facts`, arguments, environment and directory as JSON, with the standard streams as
descriptors. The server answers ``refused`` or, at the end, with the exit code.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import epochzero
from epochzero.cli.cache import cache_folder
from epochzero.platform import is_private

_GROUP_LIMITS = ("cpu.max", "cpuset.cpus.effective", "memory.max", "memory.high", "pids.max")
_LOCALE = ("LANG", "LC_", "PYTHON", "TZ")
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_LENGTH_BYTES = 8
_ANSWER_BYTES = 4096
ANSWER_S = 10.0
"""A server that does not accept a check for so long is stopped or broken."""


def exit_code(arguments: Sequence[str]) -> int | None:
    """Return the exit code of a check that the server carried out; None if there is no server for it.

    Args:
        arguments: of ``epochzero``, without its name.
    """
    file = socket_file()
    if "--serve" in arguments or file is None or not _is_ours(file):
        return None
    streams = (sys.stdin, sys.stdout, sys.stderr)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            numbers = [stream.fileno() for stream in streams]
            server.settimeout(ANSWER_S)
            server.connect(str(file))
            send(server, _request(arguments), numbers)
            started = _received(server)
            server.settimeout(None)
        except (OSError, ValueError, AttributeError):
            return None
        if "refused" in started:
            return None
        try:
            return int(_received(server)["exit"])
        except (OSError, ValueError):
            print("epochzero: the check server ended during the check", file=sys.stderr)
            return 2


def socket_file() -> Path | None:
    """Return where the server of this installation listens; None if this system has no such sockets."""
    if not hasattr(socket, "AF_UNIX") or not hasattr(socket, "send_fds"):
        return None
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(base, "epochzero") if os.path.isabs(base) else cache_folder()
    if folder is None:
        return None
    installed = f"{sys.executable}\0{os.path.dirname(epochzero.__file__)}\0{epochzero.__version__}"
    return folder / f"check-{blake2b(installed.encode(), digest_size=6).hexdigest()}.socket"


def facts() -> dict[str, Any]:
    """What a process inherits or was started with, and a request cannot change: an answer may depend on it."""
    return {
        "program": [sys.executable, sys.prefix, epochzero.__file__, epochzero.__version__],
        "python": [sys.version, sys.path, list(sys.flags), sys.warnoptions, sys._xoptions],
        "locale": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_LOCALE)},
        "user": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups())],
        "mask": _mask(),
        "limits": _limits(),
        "control_group": _control_group(),
        "processors": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "namespaces": [_link(f"/proc/self/ns/{name}") for name in _NAMESPACES],
    }


def _request(arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "facts": facts(),
        "arguments": list(arguments),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "encodings": [[stream.encoding, stream.errors] for stream in (sys.stdout, sys.stderr)],
    }


def send(to: socket.socket, message: dict[str, Any], numbers: Sequence[int] = ()) -> None:
    """Send a message with its length, and descriptors with it."""
    # A path may contain bytes that are no UTF-8.
    data = json.dumps(message).encode()
    length = len(data).to_bytes(_LENGTH_BYTES, "big")
    if numbers:
        socket.send_fds(to, [length], list(numbers))
        to.sendall(data)
    else:
        to.sendall(length + data)


def length_of(head: bytes) -> int:
    """Return the length of a message by the bytes before it.

    Raises:
        ValueError: the connection ended before them.
    """
    if len(head) != _LENGTH_BYTES:
        raise ValueError("the connection ended")
    return int.from_bytes(head, "big")


def read(connection: socket.socket, size: int) -> bytes:
    """Read so many bytes; fewer if the connection ends."""
    data = bytearray()
    while len(data) < size and (piece := connection.recv(size - len(data))):
        data += piece
    return bytes(data)


def receive(connection: socket.socket, streams: int, most: int) -> tuple[dict[str, Any], list[int]]:
    """Receive a message with its descriptors.

    Args:
        connection: to a client.
        streams: number of descriptors.
        most: largest size in bytes.

    Raises:
        ValueError: it is too large or is not a message.
    """
    head, numbers, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, streams)
    try:
        size = length_of(head)
        if size > most or len(numbers) != streams:
            raise ValueError("not a request")
        message = json.loads(read(connection, size))
        if not isinstance(message, dict):
            raise ValueError("not a request")
    except (OSError, ValueError):
        for number in numbers:
            os.close(number)
        raise
    return message, numbers


def _received(server: socket.socket) -> dict[str, Any]:
    size = length_of(read(server, _LENGTH_BYTES))
    message = json.loads(read(server, min(size, _ANSWER_BYTES)))
    if not isinstance(message, dict):
        raise ValueError("not an answer")
    return message


def _is_ours(file: Path) -> bool:
    """Whether it is a socket in a directory, and both belong to this user, who alone may write to them."""
    try:
        folder, status = os.lstat(file.parent), os.lstat(file)
    except OSError:
        return False
    return (
        stat.S_ISDIR(folder.st_mode)
        and stat.S_ISSOCK(status.st_mode)
        and is_private(folder)
        and is_private(status)
    )


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _limits() -> list[list[int]]:
    import resource  # does not exist on all systems

    kinds = {value for name, value in vars(resource).items() if name.startswith("RLIMIT_")}
    return [list(resource.getrlimit(kind)) for kind in sorted(kinds)]


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _control_group() -> list[str]:
    """The limits of the control groups that contain this process; their names if those cannot be known."""
    try:
        names = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    if len(names) != 1 or not names[0].startswith("0::/"):
        return names
    found = []
    group = Path("/sys/fs/cgroup") / names[0].removeprefix("0::/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to("/sys/fs/cgroup"):
            break
        for name in _GROUP_LIMITS:
            with suppress(OSError):
                value = (folder / name).read_text(encoding="utf-8").strip()
                if not value.startswith("max"):
                    found.append(f"{name}={value}")
    return found
