"""What an operator sets of a service."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How much a request, a job and a team may take.

    Attributes:
        body_bytes: of a request, as it arrives.
        text_bytes: of a request, without its compression.
        file_bytes: of one log or journal in the spool.
        team_bytes: of all that a team has in the spool.
        requests_per_minute: of a team; twice as many at once.
        megabytes_per_minute: that a team may send; twice as many at once.
        tries_per_minute: wrong tokens of one address.
        form_bytes: of a request that sends no log, as it arrives: it is held in memory.
        bulk_bytes: of many logs in one request, without its compression: these are held in memory too.
        work_bytes: of memory for what is diagnosed at once; what needs more is alone.
        logs: to be diagnosed, that a team has here or on their way at once.
        pieces: of logs and journals, likewise.
        forms: requests that send no log, likewise.
        connections: at once; fewer where the system allows this process fewer files.
        head_s: in which the next request of a connection must begin, and its head end.
        silent_s: for which a client may send nothing in the middle of a request, or take nothing of
            its answer; in which a request that sends no log must be here to its end.
        body_s: the same of one that sends a log.
    """

    body_bytes: int = 64 << 20
    text_bytes: int = 256 << 20
    file_bytes: int = 1 << 30
    team_bytes: int = 20 << 30
    requests_per_minute: int = 6000
    megabytes_per_minute: int = 30_000
    tries_per_minute: int = 20
    form_bytes: int = 128 << 10
    bulk_bytes: int = 64 << 20
    work_bytes: int = 128 << 20
    logs: int = 32
    pieces: int = 64
    forms: int = 32
    connections: int = 12_000
    head_s: float = 15.0
    silent_s: float = 30.0
    body_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """A service.

    Attributes:
        store: address of the database.
        folder: where that which was received lies until the store has it.
        authentication: whether a request must bear a token; without, it is asked by this machine only.
        limits: of requests.
        secure: whether it is reached by HTTPS, so that cookies are sent by that only.
        hosts: names that it may be asked by without authentication: a page of another name that leads
            here (DNS rebinding) is refused.
        private_webhooks: whether webhooks may lead into private networks.
        webhook_pauses: seconds before each further try to tell a webhook that did not take it.
        trusted_proxies: addresses and networks of reverse proxies; the client's address is taken from the
            X-Forwarded-For header of these only.
        watched: a folder whose logs are taken in.
    """

    store: str
    folder: Path
    authentication: bool = True
    limits: ServerLimits = field(default_factory=ServerLimits)
    secure: bool = False
    hosts: tuple[str, ...] = LOOPBACK
    private_webhooks: bool = False
    webhook_pauses: tuple[float, ...] = (10.0, 60.0, 300.0)
    trusted_proxies: tuple[str, ...] = ()
    watched: Path | None = None
