"""What is answered while the database is away: to programs in JSON, to people in a page that tries again."""

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
<h1>The database does not answer</h1>
<p>Nothing was lost. This page tries again every {_AGAIN_S} s; its operator sees why in the log of the service.</p>
</main></body></html>
"""


def away(path: str, error: Exception) -> Response:
    """The answer to a request; an address or an account in the words of an error is for the operator only."""
    _LOGGER.error("the store does not answer", exc_info=error)
    headers = {"Retry-After": str(_AGAIN_S)}
    if path.startswith(_PROGRAMS):
        told = {"detail": "the database does not answer: nothing was lost, try again"}
        return JSONResponse(told, 503, headers)
    return HTMLResponse(_PAGE, 503, headers)
