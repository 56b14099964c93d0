"""Whether the service lives, whether it can answer, and what it counts."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response
from sqlalchemy import text

from epochzero.web.access import Reads
from epochzero.web.state import ServiceState, Store

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def lives() -> PlainTextResponse:
    """The process answers, whatever else there is."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def ready(store: Store) -> PlainTextResponse:
    """The store answers too; otherwise 503."""
    with store.read() as session:
        session.execute(text("SELECT 1"))
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(viewer: Reads, service: ServiceState) -> Response:
    """For Prometheus: numbers of the whole service, none of a team."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
