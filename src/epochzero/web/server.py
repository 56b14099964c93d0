"""Runs the service in one process, with timeouts on all connections."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from epochzero.platform import raise_open_files
from epochzero.web.app import create_app
from epochzero.web.settings import ServerLimits, Settings

_UNREAD_S = 60
_AT_ONCE = 64
"""Connections that are accepted before running requests continue."""
_QUEUE = 4096
"""Length of the system's connection queue; the system may limit it."""
_OTHER_FILES = 512
"""Files that the database, the spool and modules have open in addition to connections."""


class _Patient(H11Protocol):
    """A connection that is closed if a request does not start, or its head does not end, in time.

    If there are too many connections, the one that has been idle longest is closed: uvicorn would reject new
    complete requests instead.
    """

    limits: ClassVar[ServerLimits] = ServerLimits()
    _waiting: ClassVar[dict[_Patient, asyncio.TimerHandle]] = {}

    _is_idle = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # A client that reads nothing keeps its response in memory.
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_S * 1000)
        self._wait(self.limits.head_s)
        if len(self.connections) > self.limits.connections and self._waiting:
            next(iter(self._waiting)).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_no_more()
        elif self._is_idle:  # The start of a head; its other parts extend nothing.
            self._wait(self.limits.head_s)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait(self.limits.idle_s)
            self._is_idle = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._wait_no_more()
        self._waiting[self] = self.loop.call_later(seconds, self.transport.abort)

    def _wait_no_more(self) -> None:
        self._is_idle = False
        if timer := self._waiting.pop(self, None):
            timer.cancel()


class _QueueingServer(uvicorn.Server):
    """Accepts few connections at a time and queues many: asyncio has one setting for both."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.startup`."""
        await super().startup(sockets)
        for listener in (each for server in self.servers for each in server.sockets):
            with socket.fromfd(listener.fileno(), listener.family, listener.type) as same:
                same.listen(_QUEUE)


def run(
    settings: Settings, listener: socket.socket, *, certificate: Path | None, key: Path | None
) -> None:
    """Serves until it is interrupted; see `server`."""
    host, port = listener.getsockname()[:2]
    server(settings, host, port, certificate=certificate, key=key).run([listener])


def server(
    settings: Settings,
    host: str,
    port: int,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
) -> uvicorn.Server:
    """The HTTP server; one per process.

    Args:
        settings: of the service.
        host, port: address to listen on.
        certificate, key: of the host, for HTTPS.

    Raises:
        StoreError: the store cannot be opened.
    """
    limits = settings.limits
    connections = min(
        limits.connections, raise_open_files(limits.connections + _OTHER_FILES) - _OTHER_FILES
    )
    _Patient.limits = replace(limits, connections=connections)
    configuration = uvicorn.Config(
        create_app(settings),
        host=host,
        port=port,
        http=_Patient,
        ws="none",
        ssl_certfile=certificate,
        ssl_keyfile=key,
        backlog=_AT_ONCE,
        timeout_keep_alive=int(limits.idle_s) + 1,  # Ours comes first.
        timeout_graceful_shutdown=10,
        server_header=False,
        proxy_headers=False,  # The application trusts the proxies in its settings.
        access_log=False,
        log_config=None,
    )
    return _QueueingServer(configuration)
