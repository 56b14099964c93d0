"""Limits all requests: host names, origin, size and duration; adds security headers to all responses.

Sources: OWASP, "Cross-Site Request Forgery Prevention Cheat Sheet" and "HTTP Security Response Headers
Cheat Sheet"; W3C, "Content Security Policy Level 3".
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epochzero.store.database import StoreError
from epochzero.web.access import viewer
from epochzero.web.metrics import Metrics
from epochzero.web.room import Room
from epochzero.web.settings import Settings
from epochzero.web.unavailable import away

LOGGER = logging.getLogger("epochzero.web")
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


_SENDING = ("/api/v1/jobs/", "/api/v1/diagnose-and-store")
"""Paths that receive logs. All other bodies are read completely before authentication."""


class _RejectedError(HTTPException):
    """A rejected request, also while its body is being read."""


class _UnreadError(Exception):
    """The client does not read the response."""


class RequestGuard:
    """ASGI middleware in front of the application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._forms = Room(settings.limits.forms)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        limits = self._settings.limits
        answer = _GuardedResponse(send, limits.silent_s)
        is_log = scope["path"].startswith(_SENDING)
        try:
            self._check(scope)
            async with self._turn(scope, is_log):
                await self._app(scope, self._bounded(receive, is_log), answer.send)
        except _UnreadError:
            pass  # An incomplete response closes the connection.
        except HTTPException as refused:
            if not answer.status:
                refusal = JSONResponse(
                    {"detail": refused.detail}, refused.status_code, refused.headers
                )
                refusal.headers["connection"] = "close"
                await refusal(scope, receive, answer.send)
        except StoreError as error:
            if not answer.status:
                await away(scope["path"], error)(scope, receive, answer.send)
        finally:
            self._tell(scope, answer.status or 500, time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._settings.authentication:
            if _name(host) not in self._settings.hosts:
                raise _RejectedError(421, f"{host[:100]!r} is not a host name of this service")
            if "x-forwarded-for" in headers or "forwarded" in headers:
                message = "tokens are required behind a proxy: start the service with `epochzero serve --authentication`"
                raise _RejectedError(421, message)
        if scope["method"] in _SAFE or "authorization" in headers:
            return
        # Requests that a page of another site triggers carry the session cookie, or need none.
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise _RejectedError(403, "requests from other sites are rejected")

    @asynccontextmanager
    async def _turn(self, scope: Scope, is_log: bool) -> AsyncIterator[None]:
        """Reads a body other than a log if the sender is known, with a limit per team."""
        headers = Headers(scope=scope)
        if is_log or not (
            "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        ):
            yield
            return
        team = ""
        if scope["path"] != "/login":
            team = (await viewer(Request(scope), scope["app"].state.service)).team
        async with self._forms.taken(team):
            yield

    def _bounded(self, receive: Receive, is_log: bool) -> Receive:
        """A `receive` function with limits on size and duration."""
        limits = self._settings.limits
        most = limits.body_bytes if is_log else limits.form_bytes
        end = time.monotonic() + (limits.body_s if is_log else limits.silent_s)
        size = 0
        whole = False

        async def bounded() -> Message:
            nonlocal size, whole
            if whole:
                return await receive()
            try:
                left = min(limits.silent_s, end - time.monotonic())
                async with asyncio.timeout(left):
                    message = await receive()
            except TimeoutError as error:
                raise _RejectedError(408, "the request body is incomplete") from error
            size += len(message.get("body", b""))
            if size > most:
                raise _RejectedError(413, f"the request exceeds {most} bytes")
            whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        return bounded

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        """Logs one line of JSON, without query, headers and body, which may contain secrets."""
        route = getattr(scope.get("route"), "path", "")
        self._metrics.answered(scope["method"], route, status, seconds)
        viewer = scope.get("state", {}).get("viewer")
        line = {
            "time": round(time.time(), 3),
            "method": scope["method"],
            "path": scope["path"][:500],
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
            "team": getattr(viewer, "team", ""),
            "who": getattr(viewer, "name", ""),
            "address": (scope.get("client") or ("",))[0],
        }
        LOGGER.info(json.dumps(line))


class _GuardedResponse:
    """Adds security headers to a response, and limits the time that the client may take to read it."""

    def __init__(self, send: Send, patience: float) -> None:
        self._send = send
        self._patience = patience
        self.status = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"] = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            for name, value in _HEADERS.items():
                if name.encode() not in there:
                    headers.append((name.encode(), value.encode()))
        try:
            async with asyncio.timeout(self._patience):
                await self._send(message)
        except TimeoutError as error:
            raise _UnreadError from error


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
