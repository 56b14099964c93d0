"""Who asks: a viewer of one team, by a bearer token or by the cookie of a session.

    @router.get("/jobs")
    def jobs(viewer: Reads, store: Store) -> ...:       # any viewer
    def note(viewer: Writes, form: CheckedForm) -> ...: # a form of a page

Each question to the store names the viewer's team: what is another team's is not there (404, not 403).
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from epochzero.store.teams import ROLES, Role, Viewer, signed_in, viewer_of
from epochzero.web.limits import too_many
from epochzero.web.state import Service, ServiceState

__all__ = [
    "COOKIE",
    "Administers",
    "CheckedForm",
    "Reads",
    "Viewer",
    "Writes",
    "address_of",
    "checked_form",
    "viewer",
]

COOKIE = "epochzero"
_LONGEST_SECRET = 200


async def viewer(request: Request, service: ServiceState) -> Viewer:
    """Who asks, as a dependency; is looked up once a request.

    Raises:
        HTTPException: 401 without a valid token or session, 429 after too many requests.
    """
    if isinstance(known := getattr(request.state, "viewer", None), Viewer):
        return known
    found = await run_in_threadpool(_found, request, service)
    if found is None:
        raise HTTPException(
            401,
            "a valid token is needed: Authorization: Bearer ...",
            {"WWW-Authenticate": "Bearer"},
        )
    if wait := service.requests.take(found.team):
        raise too_many(wait)
    request.state.viewer = found
    return found


def _found(request: Request, service: Service) -> Viewer | None:
    if not service.settings.authentication:
        return Viewer(team="", name="local", role="admin", csrf=service.csrf)
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    cookie = request.cookies.get(COOKIE, "")
    if not token and not cookie:
        return None
    if scheme.lower() == "bearer" and 0 < len(token) <= _LONGEST_SECRET:
        found = viewer_of(service.database, token.strip())
    elif not token and len(cookie) <= _LONGEST_SECRET:
        found = signed_in(service.database, cookie)
    else:
        found = None
    # Only who is wrong waits: others may have the same address, as behind a proxy.
    if found is None and (wait := service.tries.take(address_of(request))):
        raise too_many(wait)
    return found


def address_of(request: Request) -> str:
    """The network address of who asks."""
    return request.client.host if request.client else ""


def _at_least(role: Role) -> Callable[[Viewer], Awaitable[Viewer]]:
    async def allowed(one: Annotated[Viewer, Depends(viewer)]) -> Viewer:
        if ROLES.index(one.role) < ROLES.index(role):
            raise HTTPException(403, f"a {one.role} may not do this: it takes a {role}'s token")
        return one

    return allowed


Reads = Annotated[Viewer, Depends(viewer)]
Writes = Annotated[Viewer, Depends(_at_least("writer"))]
Administers = Annotated[Viewer, Depends(_at_least("admin"))]


async def checked_form(request: Request, one: Reads) -> FormData:
    """The fields of a form that this service has made, as a dependency.

    Raises:
        HTTPException: 403 where the field ``csrf`` is not that of the session.
    """
    form = await request.form(max_files=0, max_fields=50)
    given = str(form.get("csrf", ""))
    if not one.csrf or not hmac.compare_digest(given.encode(), one.csrf.encode()):
        raise HTTPException(403, "this form is too old: load its page again")
    return form


CheckedForm = Annotated[FormData, Depends(checked_form)]
