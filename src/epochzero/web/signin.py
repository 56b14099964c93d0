"""Sign-in in a browser, with a token or an account: a session cookie that scripts cannot read."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from epochzero.store.teams import (
    SESSION_S,
    Viewer,
    sign_in,
    sign_in_account,
    sign_out,
    viewer_of,
)
from epochzero.web.access import COOKIE, CheckedForm, Reads, audit, refused
from epochzero.web.provider import CALLBACK, Membership, SignInError
from epochzero.web.state import Service, ServiceState

if TYPE_CHECKING:
    from epochzero.web.accounts import Accounts

router = APIRouter(include_in_schema=False)

_LONGEST_PATH = 1000
_HEAD = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sign in - EpochZero</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/style.css"></head>
<body><header><a class="brand" href="/">EpochZero</a></header><main class="signin">
"""
_CHOICE = (
    _HEAD
    + """<h1>Your teams</h1>
<ul>
{links}</ul>
</main></body></html>
"""
)
_PAGE = (
    _HEAD
    + """<h1>Sign in</h1>
{problem}{account}<form method="post" action="/login">
<p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required></p>
<input type="hidden" name="next" value="{next}">
<p><button>Sign in</button></p>
</form>
<p>An admin of your team can create a token: <code>epochzero serve token TEAM NAME</code></p>
</main></body></html>
"""
)


@router.get("/login")
def form(service: ServiceState, next: str = "/") -> HTMLResponse:
    """The form."""
    return _page(service, next)


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
        problem = "This token is not valid: it is unknown, expired or revoked."
        return _page(service, next, problem)
    audit(service, found, request, "signed in")
    return _welcome(service, cookie, next)


@router.get("/login/account")
async def to_provider(
    request: Request, service: ServiceState, next: str = "/", team: str = ""
) -> Response:
    """Leads to the provider of accounts."""
    accounts = _accounts(service)
    request.session.clear()
    request.session.update(next=_own(next)[:_LONGEST_PATH], team=team[:_LONGEST_PATH])
    try:
        return await accounts.to_provider(request)
    except SignInError as problem:
        return _page(service, next, str(problem), 502)


@router.get(CALLBACK)
async def from_provider(request: Request, service: ServiceState) -> Response:
    """Starts the session of a person whom the provider has identified."""
    accounts = _accounts(service)
    next, team = (str(request.session.get(name, "")) for name in ("next", "team"))
    try:
        person = await accounts.person(request)
    except SignInError as problem:
        await run_in_threadpool(refused, request, service)
        return _page(service, next, str(problem), 403)
    request.session.clear()
    members = [member for member in person.members if team in ("", member.team)]
    if len(members) > 1:
        return HTMLResponse(_choice(members, next))
    if not members:
        return _page(service, next, f"The account {person.name} may not see the team {team}.", 403)
    viewer = Viewer(members[0].team, person.name, members[0].role)
    cookie = await run_in_threadpool(sign_in_account, service.database, person.subject, viewer)
    await run_in_threadpool(audit, service, viewer, request, "signed in")
    return _welcome(service, cookie, next)


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


def _accounts(service: Service) -> Accounts:
    if service.accounts is None:
        raise HTTPException(
            404,
            "this server does not sign in accounts; start it with `epochzero serve --sign-in FILE`",
        )
    return service.accounts


def _welcome(service: Service, cookie: str, next: str) -> Response:
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


def _page(service: Service, next: str, problem: str = "", status: int = 401) -> HTMLResponse:
    alert = f'<p role="alert">{escape(problem)}</p>\n' if problem else ""
    account = ""
    if service.accounts is not None:
        host = escape(service.accounts.provider.host)
        account = f'<p><a href="{_to_account(next)}">Sign in with your account at {host}</a></p>\n'
    text = _PAGE.format(problem=alert, account=account, next=escape(_own(next)))
    return HTMLResponse(text, status if problem else 200)


def _choice(members: list[Membership], next: str) -> str:
    """A page that asks for the team of a person who has several."""
    links = "".join(
        f'<li><a href="{_to_account(next, team=member.team)}">{escape(member.team)}</a>'
        f" ({member.role})</li>\n"
        for member in members
    )
    return _CHOICE.format(links=links)


def _to_account(next: str, **query: str) -> str:
    return escape(f"/login/account?{urlencode({'next': _own(next), **query})}")


def _own(path: str) -> str:
    """A path of this service; no address of another."""
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if own else "/"
