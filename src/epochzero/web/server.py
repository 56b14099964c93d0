"""Runs the service: one process, with an end to all waiting."""

from __future__ import annotations

import asyncio
import resource
import socket
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from epochzero.web.app import create_app
from epochzero.web.settings import ServerLimits, Settings

_UNREAD_S = 60
_AT_ONCE = 64
"""Connections that are let in before the requests under way have their turn again."""
_QUEUE = 4096
"""Connections that wait at the system; it may allow fewer."""
_OTHER_FILES = 512
"""What the database, the spool and the modules have open beside connections."""


class _Patient(H11Protocol):
    """A connection that is closed when a request does not begin, or its head does not end, in time.

    Where there are too many, the one that has been silent longest is given up: uvicorn would refuse those who come
    with a whole request.
    """

    limits: ClassVar[ServerLimits] = ServerLimits()
    _waiting: ClassVar[dict[_Patient, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # One who reads nothing holds what it has asked for.
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_S * 1000)
        self._wait_for_head()
        if len(self.connections) > self.limits.connections and self._waiting:
            next(iter(self._waiting)).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self not in self._waiting:
            self._waiting[self] = self.loop.call_later(self.limits.head_s, self.transport.abort)

    def _wait_no_more(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()


class _Server(uvicorn.Server):
    """Lets few connections in at once, and many wait: asyncio has one number for both."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.startup`."""
        await super().startup(sockets)
        for listener in (one for server in self.servers for one in server.sockets):
            with socket.fromfd(listener.fileno(), listener.family, listener.type) as same:
                same.listen(_QUEUE)


def run(
    settings: Settings, host: str, port: int, *, certificate: Path | None, key: Path | None
) -> None:
    """Answers until it is interrupted; see `server`."""
    server(settings, host, port, certificate=certificate, key=key).run()


def server(
    settings: Settings,
    host: str,
    port: int,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
) -> uvicorn.Server:
    """What answers; a process has one.

    Args:
        settings: of the service.
        host, port: where.
        certificate, key: of the host, for HTTPS.

    Raises:
        StoreError: the store cannot be opened.
    """
    limits = settings.limits
    connections = min(limits.connections, _most_files(limits.connections) - _OTHER_FILES)
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
        timeout_keep_alive=int(limits.head_s) + 1,  # Ours comes first.
        timeout_graceful_shutdown=10,
        server_header=False,
        proxy_headers=False,  # The application trusts those that its settings name.
        access_log=False,
        log_config=None,
    )
    return _Server(configuration)


def _most_files(connections: int) -> int:
    """How many files this process may have open, after asking for as many as it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
