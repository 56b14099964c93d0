"""Responses while the database is unavailable: JSON for programs, a reloading page for people."""

from __future__ import annotations

import logging

from starlette.responses import HTMLResponse, JSONResponse, Response

_LOGGER = logging.getLogger("epochzero.web")
_AGAIN_S = 5
_PROGRAMS = ("/api/", "/metrics", "/readyz")
_PAGE = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Try again - EpochZero</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="{_AGAIN_S}">
<link rel="stylesheet" href="/static/style.css"></head>
<body><main>
<h1>The database does not respond</h1>
<p>No data was lost. This page reloads every {_AGAIN_S} s; the service's log shows the cause.</p>
</main></body></html>
"""


def away(path: str, error: Exception) -> Response:
    """The response to a request; details of the error, such as addresses, are only for the operator."""
    _LOGGER.error("the store does not respond", exc_info=error)
    headers = {"Retry-After": str(_AGAIN_S)}
    if path.startswith(_PROGRAMS):
        body = {"detail": "the database does not respond; no data was lost, try again"}
        return JSONResponse(body, 503, headers)
    return HTMLResponse(_PAGE, 503, headers)
