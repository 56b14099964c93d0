"""How supervisor and guard talk: JSON objects, one a line, over a pair of sockets.

Python's standard library only: the guard runs without anything else.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any


class Channel:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._begun = b""

    def fileno(self) -> int:
        """A descriptor that can be read when the other end has sent something, or is gone."""
        return self._end.fileno()

    def send(self, **message: object) -> None:
        """Sends a message; nothing when the other end is gone, which the next `receive` says."""
        with suppress(OSError):
            self._end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[dict[str, Any]] | None:
        """The messages that are whole now; None when the other end is gone. Waits for one byte."""
        data = b""
        with suppress(OSError):
            data = self._end.recv(1 << 16)
        if not data:
            return None
        *lines, self._begun = (self._begun + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Lets go of the socket."""
        self._end.close()
