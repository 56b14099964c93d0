"""Sign-in with a token in a browser: a session cookie that scripts cannot read."""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from epochzero.store.teams import SESSION_S, sign_in, sign_out, viewer_of
from epochzero.web.access import COOKIE, CheckedForm, Reads, audit, refused
from epochzero.web.state import ServiceState

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sign in - EpochZero</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/style.css"></head>
<body><main>
<h1>Sign in</h1>
{problem}<form method="post" action="/login">
<p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required></p>
<input type="hidden" name="next" value="{next}">
<p><button>Sign in</button></p>
</form>
<p>An admin of your team can create a token: <code>epochzero serve token TEAM NAME</code></p>
</main></body></html>
"""


@router.get("/login")
def form(next: str = "/") -> HTMLResponse:
    """The form."""
    return _page(next)


@router.post("/login")
def begin(
    request: Request,
    service: ServiceState,
    token: Annotated[str, Form(max_length=200)],
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Starts a session; shows the form again if the token is not valid."""
    found = viewer_of(service.database, token.strip())
    cookie = sign_in(service.database, token.strip()) if found else None
    if found is None or cookie is None:
        refused(request, service)
        return _page(next, "This token is not valid: it is unknown, expired or revoked.")
    audit(service, found, request, "signed in")
    answer = RedirectResponse(_own(next), 303)
    answer.set_cookie(
        COOKIE,
        cookie,
        max_age=int(SESSION_S),
        httponly=True,
        samesite="lax",
        secure=service.settings.secure,
    )
    return answer


@router.post("/logout")
def end(
    request: Request, service: ServiceState, viewer: Reads, form: CheckedForm
) -> RedirectResponse:
    """Ends the session."""
    cookie = request.cookies.get(COOKIE)
    if cookie is None:
        raise HTTPException(400, "no active session")
    sign_out(service.database, cookie)
    audit(service, viewer, request, "signed out")
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


def _page(next: str, problem: str = "") -> HTMLResponse:
    alert = f'<p role="alert">{escape(problem)}</p>\n' if problem else ""
    return HTMLResponse(
        _PAGE.format(problem=alert, next=escape(_own(next))), 401 if problem else 200
    )


def _own(path: str) -> str:
    """A path of this service; no address of another."""
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if own else "/"
