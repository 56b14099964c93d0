"""API for admins: tokens, webhooks, deleting jobs, and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field

from epochzero.run.reports.notifications import Webhook
from epochzero.store.audit import Act, acts
from epochzero.store.retention import RunningError, delete_job
from epochzero.store.teams import Role, TokenDetails, add_token, revoke_token, tokens
from epochzero.store.webhooks import WebhookFilter, add_rule, remove_rule, rules
from epochzero.web.access import Administers, audit, granted
from epochzero.web.api import OwnJob
from epochzero.web.problems import or_404, problem
from epochzero.web.state import ServiceState, Store
from epochzero.web.validation import origin_of

router = APIRouter(
    prefix="/api/v1",
    tags=["managing"],
)
_MISSING = problem(404, "Not found in your team")
Identity = Annotated[int, Field(ge=1, lt=1 << 53)]


class NewToken(BaseModel):
    """A token to create."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    role: Role = "writer"
    days: Annotated[float, Field(gt=0, le=3650)] | None = None


class MadeToken(BaseModel):
    """A created token, returned only once."""

    token: str


class NewRule(BaseModel):
    """A webhook rule to create."""

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    what: Literal["new_fingerprint", "gpu_hours"] = "new_fingerprint"
    hours: Annotated[float, Field(ge=0, le=1e9)] | None = None


@router.get("/tokens")
def list_tokens(viewer: Administers, store: Store) -> list[TokenDetails]:
    """List the team's tokens, without their secrets."""
    return list(tokens(store, viewer.team))


@router.post("/tokens", status_code=201)
def make_token(
    viewer: Administers, service: ServiceState, request: Request, new: NewToken
) -> MadeToken:
    """Create a token."""
    role = granted(viewer, new.role)
    made = add_token(service.database, viewer.team, new.name, role, days=new.days)
    audit(service, viewer, request, "token created", f"{new.name} ({new.role})")
    return MadeToken(token=made)


@router.delete("/tokens/{identity}", status_code=204, responses=_MISSING)
def end_token(
    viewer: Administers, service: ServiceState, request: Request, identity: Identity
) -> None:
    """Revoke a token immediately."""
    with or_404():
        revoke_token(service.database, identity, team=viewer.team)
    audit(service, viewer, request, "token revoked", str(identity))


@router.get("/webhooks")
def list_rules(viewer: Administers, store: Store) -> list[WebhookFilter]:
    """List the team's webhooks."""
    return list(rules(store, viewer.team))


@router.post("/webhooks", status_code=201)
def make_rule(
    viewer: Administers, service: ServiceState, request: Request, new: NewRule
) -> WebhookFilter:
    """Create a webhook. Its format depends on its host: Slack, Mattermost, Discord, Teams, or plain JSON."""
    Webhook(new.url, private=service.settings.private_webhooks).check_address()
    made = add_rule(service.database, viewer.team, new.url, new.what, new.hours)
    audit(service, viewer, request, "webhook created", f"{made.host} ({made.what})")
    return made


@router.delete("/webhooks/{identity}", status_code=204, responses=_MISSING)
def end_rule(
    viewer: Administers, service: ServiceState, request: Request, identity: Identity
) -> None:
    """Delete a webhook."""
    with or_404():
        remove_rule(service.database, viewer.team, identity)
    audit(service, viewer, request, "webhook removed", str(identity))


@router.delete(
    "/jobs/{job}",
    status_code=204,
    responses=_MISSING | problem(409, "The job is still running"),
)
def end_job(viewer: Administers, service: ServiceState, request: Request, key: OwnJob) -> None:
    """Delete a finished job with its logs and all its records."""
    try:
        delete_job(service.database, key, origin_of(viewer.team))
    except RunningError as error:
        raise HTTPException(409, str(error)) from error
    audit(service, viewer, request, "job deleted", key)


@router.get("/audit")
def list_acts(
    viewer: Administers, store: Store, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Act]:
    """List the team's audit log, newest first; rejected sign-ins belong to no team and are shown to all."""
    return list(acts(store, viewer.team, limit=limit))
