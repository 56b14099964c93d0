"""Health checks and metrics."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response
from sqlalchemy import text

from epochzero.web.access import Reads
from epochzero.web.spool import Full
from epochzero.web.state import ServiceState

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def lives() -> PlainTextResponse:
    """The process is alive."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def ready(service: ServiceState) -> PlainTextResponse:
    """The store responds, and the disk can take logs; otherwise 503."""
    with service.database.read() as session:
        session.execute(text("SELECT 1"))
    try:
        service.spool.check_room()
    except Full as error:
        return PlainTextResponse(f"{error}\n", 503, {"Retry-After": "60"})
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(viewer: Reads, service: ServiceState) -> Response:
    """Prometheus metrics of the whole service, without data of teams."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
