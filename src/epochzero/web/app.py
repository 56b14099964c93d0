"""Assembles the ASGI application."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.routing import Match, Mount
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from epochzero import __version__
from epochzero.errors import InputError
from epochzero.store.database import StoreError, StoreFullError
from epochzero.store.recorder import ConflictError
from epochzero.web import administration, api, health, ingest, pages, signin
from epochzero.web.guard import LOGGER, RequestGuard
from epochzero.web.metrics import Metrics
from epochzero.web.problems import PROBLEMS
from epochzero.web.settings import Settings
from epochzero.web.spool import FULL
from epochzero.web.state import prepare, watched_folder
from epochzero.web.unavailable import away
from epochzero.web.upkeep import Upkeep

_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_SIGN_IN_S = 600
_STATIC = Path(__file__).with_name("static")


def create_app(settings: Settings) -> FastAPI:
    """The ASGI application, ready to serve.

    Raises:
        StoreError: the store cannot be opened.
    """
    metrics = Metrics()
    app = FastAPI(
        title="EpochZero",
        version=__version__,
        summary="Failures of a team's deep-learning jobs.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # Its page requires scripts from another host.
        redoc_url=None,
        lifespan=_lifespan,
    )
    prepare(app, settings, metrics)
    app.add_middleware(RequestGuard, settings=settings, metrics=metrics)
    if settings.provider is not None:
        from starlette.middleware.sessions import SessionMiddleware  # Of the extra `accounts`.

        # Between the two requests of a sign-in; a restart of the server in between ends it.
        app.add_middleware(
            SessionMiddleware,
            secret_key=secrets.token_urlsafe(32),
            session_cookie="epochzero_account",
            path="/login/account",
            max_age=_SIGN_IN_S,
            https_only=settings.secure,
        )
    if settings.trusted_proxies:
        proxies = list(settings.trusted_proxies)
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)
    for router in (health.router, signin.router, pages.router):
        app.include_router(router)
    for router in (ingest.router, api.router, administration.router):
        app.include_router(router, responses=PROBLEMS)
    app.mount("/static", StaticFiles(directory=_STATIC, check_dir=False), name="static")
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(StoreError, _away)
    app.add_exception_handler(StoreFullError, _full)
    app.add_exception_handler(InputError, _wrong)
    app.add_exception_handler(ConflictError, _conflicting)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service = app.state.service
    watched = watched_folder(service)
    service.diagnosing.start()
    upkeep = Upkeep(service.database, service.settings.log_days)
    service.intake.start()
    service.deliveries.start()
    upkeep.start()
    if watched is not None:
        watched.start()
    yield
    await run_in_threadpool(service.reporting.stop)
    if watched is not None:
        await run_in_threadpool(watched.stop)
    await run_in_threadpool(upkeep.stop)
    await run_in_threadpool(service.intake.stop)
    await run_in_threadpool(service.deliveries.stop)
    await run_in_threadpool(service.diagnosing.stop)
    service.database.close()


async def _refused(request: Request, error: Exception) -> Response:
    """An error response as JSON; browsers without a session are redirected to the sign-in page."""
    assert isinstance(error, HTTPException | AnyHTTPException)
    if error.status_code == 401 and request.method == "GET" and not _is_api(request):
        path = request.url.path
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/login?next={quote(path + query, safe='')}", 303)
    if error.status_code == 405:
        # Each method is a route of its own, and the router names those of the first one only.
        error.headers = {"Allow": ", ".join(_methods(request))}
    return await http_exception_handler(request, error)


def _methods(request: Request) -> list[str]:
    """The methods that a path supports."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
            if not isinstance(route, Mount)
        )
    ]


def _is_api(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/metrics"))


async def _away(request: Request, error: Exception) -> Response:
    return away(request.url.path, error)


async def _full(request: Request, error: Exception) -> Response:
    LOGGER.error("the store's disk is full", exc_info=error)
    return JSONResponse({"detail": FULL}, 507, {"Retry-After": "60"})


async def _wrong(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 422)


async def _conflicting(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 409)
