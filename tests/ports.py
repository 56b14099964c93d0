"""Ports for the servers that tests start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress


def unused_port() -> int:
    """A port of 127.0.0.1 on which nothing listens.

    It is below those that systems give to outgoing connections: one of them could take the port before the server does.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with socket.socket() as trial, suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port
