"""What is let in at all: the names the service is asked by, where a request comes from, how large it
is and how long it takes; and what every answer says to a browser.

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
"""What logs are sent to. All other bodies are read whole, before it is known whose they are."""


class _RefusedError(HTTPException):
    """A request that is not answered as it asked; also out of the middle of its body."""


class _UnreadError(Exception):
    """Nobody takes the answer."""


class Guard:
    """Stands before the whole service."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._forms = Room(settings.limits.forms)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        limits = self._settings.limits
        answer = _Answer(send, limits.silent_s)
        is_log = scope["path"].startswith(_SENDING)
        try:
            self._check(scope)
            async with self._turn(scope, is_log):
                await self._app(scope, self._bounded(receive, is_log), answer.send)
        except _UnreadError:
            pass  # The connection is closed where an answer is not whole.
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
                raise _RefusedError(421, f"this service is not asked by the name {host[:100]!r}")
            if "x-forwarded-for" in headers or "forwarded" in headers:
                told = "behind a proxy this service needs tokens: epochzero serve --authentication"
                raise _RefusedError(421, told)
        if scope["method"] in _SAFE or "authorization" in headers:
            return
        # What a page of another site makes a browser send bears its cookie, or needs none here.
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise _RefusedError(403, "a page of another site may not ask for this")

    @asynccontextmanager
    async def _turn(self, scope: Scope, is_log: bool) -> AsyncIterator[None]:
        """Lets a body that is no log be read where it is known whose it is, and not too many of one team."""
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
        """What receives a body that may have so many bytes, and take so long."""
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
                raise _RefusedError(408, "the request was not sent to its end") from error
            size += len(message.get("body", b""))
            if size > most:
                raise _RefusedError(413, f"such a request has at most {most} bytes")
            whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        return bounded

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        """One line of JSON: no query, no header and no body, which may hold secrets."""
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


class _Answer:
    """Adds the headers that every answer has; does not wait for ever for one who reads."""

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
