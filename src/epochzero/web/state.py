"""State shared by all requests: settings, store, spool, counters."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, FastAPI, Request

from epochzero.store.database import Database, open_database
from epochzero.web.deliveries import Deliveries
from epochzero.web.diagnosis_worker import Budget
from epochzero.web.intake import Intake
from epochzero.web.job_writer import Keeping
from epochzero.web.limits import Buckets
from epochzero.web.log_diagnosis import Diagnosing
from epochzero.web.metrics import Metrics
from epochzero.web.provider import Provider
from epochzero.web.report_jobs import Reporting
from epochzero.web.room import Room
from epochzero.web.settings import Settings
from epochzero.web.spool import Spool
from epochzero.web.watched_folder import WatchedFolder

if TYPE_CHECKING:
    from epochzero.web.accounts import Accounts

_REFUSALS_PER_MINUTE = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """The state of a running service.

    Attributes:
        tries: wrong tokens per network.
        refusals: audit entries about them.
        logs, pieces: concurrency limits per team.
        bulk: memory per team for requests with many logs.
        accounts: to sign in with; None if only tokens are accepted.
        csrf: token of forms if no one signs in.
    """

    settings: Settings
    database: Database
    metrics: Metrics
    spool: Spool
    intake: Intake
    deliveries: Deliveries
    diagnosing: Diagnosing
    keeping: Keeping
    requests: Buckets
    megabytes: Buckets
    tries: Buckets
    refusals: Buckets
    logs: Room
    pieces: Room
    bulk: Room
    reporting: Reporting
    accounts: Accounts | None
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


def prepare(app: FastAPI, settings: Settings, metrics: Metrics) -> Service:
    """Opens the store and adds the state to ``app.state``.

    Raises:
        StoreError: the store cannot be opened.
    """
    limits = settings.limits
    database = open_database(settings.store, stays_open=True)
    spool = Spool(settings.folder.absolute())
    spool.make_private()
    deliveries = Deliveries(
        database,
        private=settings.private_webhooks,
        pauses=settings.webhook_pauses,
        url=settings.url,
    )
    prepared = Service(
        settings,
        database,
        metrics,
        spool,
        Intake(database, spool, metrics),
        deliveries,
        Diagnosing(spool.folder, Budget(limits.diagnosis_s, limits.diagnosis_memory)),
        Keeping(database),
        Buckets(limits.requests_per_minute),
        Buckets(limits.megabytes_per_minute),
        Buckets(limits.tries_per_minute),
        Buckets(_REFUSALS_PER_MINUTE),
        Room(limits.logs),
        Room(limits.pieces),
        Room(limits.bulk_memory),
        Reporting(),
        _accounts(settings.provider),
    )
    app.state.service = prepared
    app.state.database = prepared.database
    return prepared


def _accounts(provider: Provider | None) -> Accounts | None:
    if provider is None:
        return None
    from epochzero.web.accounts import Accounts  # Of the extra `accounts`.

    return Accounts(provider)


def watched_folder(service: Service) -> WatchedFolder | None:
    """The importer of the watched directory, if one is configured."""
    settings = service.settings
    if settings.watched is None:
        return None
    most = settings.limits.text_bytes
    return WatchedFolder(
        settings.watched, service.keeping, service.diagnosing, service.spool, most=most
    )


# Asynchronous: switching to a thread takes longer than these functions.
async def service(request: Request) -> Service:
    """The running service, as a dependency."""
    return cast("Service", request.app.state.service)


async def store(request: Request) -> Database:
    """The open store, as a dependency."""
    return (await service(request)).database


ServiceState = Annotated[Service, Depends(service)]
Store = Annotated[Database, Depends(store)]
