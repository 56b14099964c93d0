"""Authentication: a viewer of one team, by a bearer token or a session cookie.

    @router.get("/jobs")
    def jobs(viewer: Reads, store: Store) -> ...:       # any viewer
    def note(viewer: Writes, form: CheckedForm) -> ...: # a form of a page

Every query is restricted to the viewer's team: data of other teams do not exist for it (404, not 403).
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from epochzero.errors import InputError
from epochzero.store.audit import REFUSED, note
from epochzero.store.teams import ROLES, Role, Viewer, signed_in, viewer_of
from epochzero.web.limits import too_many
from epochzero.web.state import Service, ServiceState

COOKIE = "epochzero"
_LONGEST_SECRET = 200
_LONGEST_ADDRESS = 64


async def viewer(request: Request, service: ServiceState) -> Viewer:
    """The viewer of a request, as a dependency; determined once per request.

    Raises:
        HTTPException: 401 without a valid token or session, 429 after too many requests.
    """
    if isinstance(known := getattr(request.state, "viewer", None), Viewer):
        return known
    found = await _found(request, service)
    if found is None:
        raise HTTPException(
            401,
            "a valid token is required (Authorization: Bearer ...)",
            {"WWW-Authenticate": "Bearer"},
        )
    if wait := service.requests.take(found.team):
        raise too_many(wait)
    request.state.viewer = found
    return found


async def _found(request: Request, service: Service) -> Viewer | None:
    if not service.settings.authentication:
        return Viewer(team="", name="local", role="admin", csrf=service.csrf)
    if "authorization" not in request.headers and COOKIE not in request.cookies:
        return None  # Unauthenticated requests must not occupy the thread pool.
    return await run_in_threadpool(_shown, request, service)


def _shown(request: Request, service: Service) -> Viewer | None:
    """The viewer of the token or cookie in a request."""
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
    if found is None:
        refused(request, service, record=bool(token))
    return found


def refused(request: Request, service: Service, *, record: bool = True) -> None:
    """Counts an invalid token or session.

    Only requests with invalid tokens are delayed: others may share the address, for example behind a proxy.

    Args:
        request: the request.
        service: the running service.
        record: whether to write an audit entry; not for expired sessions.

    Raises:
        HTTPException: 429 after too many invalid tokens from this network.
    """
    address = address_of(request)
    network = _network(address)
    if wait := service.tries.take(network):
        raise too_many(wait)
    # A node with an expired token retries forever: one entry per minute is enough.
    if record and not service.refusals.take(network):
        note(service.database, "", "", REFUSED, address=address)


def address_of(request: Request) -> str:
    """The network address of the client, as reported by a trusted proxy if the request comes from one."""
    return request.client.host[:_LONGEST_ADDRESS] if request.client else ""


def _network(address: str) -> str:
    """The network that an address belongs to: an IPv6 host may use all addresses of a /64 network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def audit(service: Service, viewer: Viewer, request: Request, action: str, what: str = "") -> None:
    """Records an action of a viewer in the team's audit log.

    Raises:
        StoreError: the store cannot be written.
    """
    address = address_of(request)
    note(service.database, viewer.team, viewer.name, action, what, address=address)


def granted(viewer: Viewer, role: str) -> Role:
    """A role that a viewer gives to a token.

    Raises:
        InputError: no such role.
        HTTPException: 403 if it permits more than the viewer's own role.
    """
    if role not in ROLES:
        raise InputError(f"{role!r} is not a role; choose one of {', '.join(ROLES)}")
    if ROLES.index(role) > ROLES.index(viewer.role):
        raise HTTPException(403, f"the role {viewer.role} cannot create a token with role {role}")
    return ROLES[ROLES.index(role)]


def _at_least(role: Role) -> Callable[[Viewer], Awaitable[Viewer]]:
    async def allowed(known: Annotated[Viewer, Depends(viewer)]) -> Viewer:
        if ROLES.index(known.role) < ROLES.index(role):
            raise HTTPException(
                403,
                f"the role {known.role} is not allowed to do this; a {role} token is required",
            )
        return known

    return allowed


Reads = Annotated[Viewer, Depends(viewer)]
Writes = Annotated[Viewer, Depends(_at_least("writer"))]
Administers = Annotated[Viewer, Depends(_at_least("admin"))]
Operates = Annotated[Viewer, Depends(_at_least("operator"))]


async def checked_form(request: Request, reads: Reads) -> FormData:
    """The fields of a form of this service, as a dependency.

    Raises:
        HTTPException: 403 if the field ``csrf`` does not match the session.
    """
    form = await request.form(max_files=0, max_fields=50)
    given = str(form.get("csrf", ""))
    if not reads.csrf or not hmac.compare_digest(given.encode(), reads.csrf.encode()):
        raise HTTPException(403, "this form has expired; reload the page")
    return form


CheckedForm = Annotated[FormData, Depends(checked_form)]
