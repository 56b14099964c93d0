"""Settings of the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from epochzero.web.provider import Provider

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits per request, job and team.

    Attributes:
        body_bytes: of a request, as received.
        text_bytes: of a request, decompressed.
        file_bytes: of one log or journal in the spool.
        team_bytes: of all data of a team in the spool.
        requests_per_minute: of a team; bursts may be twice as large.
        megabytes_per_minute: sent by a team; bursts may be twice as large.
        tries_per_minute: wrong tokens of one address.
        form_bytes: of a request without a log, as received; it is held in memory.
        bulk_bytes: of many logs in one request, decompressed; they are held in memory too.
        bulk_memory: memory of a team for concurrent requests with many logs; a larger request runs alone.
        diagnosis_s: processor time to diagnose a log; over it, only the end of the log is diagnosed.
        diagnosis_memory: memory to diagnose a log, in bytes.
        logs: concurrent diagnosis requests of a team.
        pieces: concurrent parts of logs and journals of a team.
        forms: concurrent requests without a log of a team.
        connections: concurrent connections; fewer if the system limits open files.
        head_s: time until the first request of a connection starts, and until the head of each request ends.
        idle_s: time until the next request of a connection starts. Load balancers reuse a connection for up
            to 60 s; one that the service closes earlier makes them answer 502.
        silent_s: time without received bytes within a request or without reading the response; total time
            of a request without a log.
        body_s: total time of a request with a log.
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
    bulk_memory: int = 128 << 20
    diagnosis_s: float = 10.0
    diagnosis_memory: int = 1 << 30
    logs: int = 32
    pieces: int = 64
    forms: int = 32
    connections: int = 12_000
    head_s: float = 15.0
    idle_s: float = 75.0
    silent_s: float = 30.0
    body_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a service.

    Attributes:
        store: address of the database.
        folder: directory of received data until they are in the store.
        authentication: whether requests require a token; without it, only local requests are accepted.
        limits: of requests.
        secure: whether clients use HTTPS, so that cookies are restricted to it.
        hosts: allowed host names without authentication: pages of other names that resolve
            to this host (DNS rebinding) are rejected.
        private_webhooks: whether webhooks may use private networks.
        webhook_pauses: seconds before each further delivery attempt.
        trusted_proxies: addresses and networks of reverse proxies, whose
            X-Forwarded-For header is accepted.
        watched: a directory whose logs are imported.
        log_days: for how long logs and samples of ended jobs are stored; None for all time.
        provider: of accounts to sign in with; None for tokens only.
        url: address of the service as browsers see it; empty if unknown.
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
    log_days: float | None = None
    provider: Provider | None = None
    url: str = ""
