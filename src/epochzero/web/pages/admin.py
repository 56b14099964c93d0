"""Admin page of a team: tokens, webhooks, ownership rules, saved searches, retention, audit log; teams for operators."""

from __future__ import annotations

import time
from collections.abc import Callable

from fastapi import HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from epochzero.errors import InputError
from epochzero.run.reports.notifications import Webhook
from epochzero.store import issues
from epochzero.store.audit import acts
from epochzero.store.retention import prune
from epochzero.store.saved_searches import saved_searches
from epochzero.store.teams import (
    ROLES,
    Viewer,
    add_team,
    add_token,
    revoke_token,
    team_summaries,
    teams,
    tokens,
)
from epochzero.store.webhooks import add_rule, remove_rule, rules
from epochzero.web.access import Administers, CheckedForm, Operates, audit, granted
from epochzero.web.pages.responses import Action, page, pages_router
from epochzero.web.state import Service, ServiceState, Store

router = pages_router()

_MOST_ACTS = 50
_LONGEST = 2000
_LEAST_DAYS, _MOST_DAYS = 1, 3650


@router.get("/admin", response_model=None)
def admin(request: Request, viewer: Administers, store: Store) -> Response:
    """Shows the settings of a team."""
    return _page(request, viewer, store)


@router.post("/admin/team", response_model=None)
def new_team(
    request: Request, viewer: Operates, service: ServiceState, form: CheckedForm
) -> Response:
    """Adds a team and shows the token of its first admin once."""
    team, name = _text(form, "team"), _text(form, "name")
    if team in teams(service.database):
        raise InputError(f"the team {team!r} already exists")
    add_team(service.database, team)
    made = add_token(service.database, team, name, "admin")
    audit(service, viewer, request, "team added", f"{team}, with admin {name}")
    return _page(request, viewer, service.database, token=made)


@router.post("/admin/{act}", response_model=None)
def change(
    request: Request, viewer: Administers, service: ServiceState, form: CheckedForm, act: str
) -> Response:
    """Changes one setting; a new token is shown once, other changes redirect to the page."""
    if act == "token":
        name, role = _text(form, "name"), granted(viewer, _text(form, "role"))
        days = _number(form, "days") if form.get("days") else None
        made = add_token(service.database, viewer.team, name, role, days=days)
        audit(service, viewer, request, "token created", f"{name} ({role})")
        return _page(request, viewer, service.database, token=made)
    if act not in _ACTS:
        raise HTTPException(404, f"Unknown action {act}.")
    action, what = _ACTS[act](service, viewer.team, form)
    audit(service, viewer, request, action, what)
    return RedirectResponse("/admin", 303)


def _page(request: Request, viewer: Viewer, store: Store, *, token: str = "") -> Response:
    now = time.time()
    made = [token for token in tokens(store, viewer.team) if token.revoked is None]
    hooks, owners = rules(store, viewer.team), issues.owner_rules(store, viewer.team)
    steps = []
    if viewer.team and not hooks:
        steps.append(
            Action("Add a webhook, so that the team is notified of new failures.", "#webhooks")
        )
    if not owners:
        steps.append(Action("Add an ownership rule, so that new issues have an owner.", "#owners"))
    return page(
        request, viewer, "admin",
        title=f"Admin of {viewer.team}" if viewer.team else "Admin",
        now=steps,
        exports=(),
        token=token,
        tokens=[t for t in made if t.expires is None or t.expires > now],
        roles=ROLES[: ROLES.index(viewer.role) + 1],
        teams=team_summaries(store) if viewer.role == "operator" else (),
        hooks=hooks,
        owners=owners,
        searches=saved_searches(store, viewer.team),
        acts=acts(store, viewer.team, limit=_MOST_ACTS),
    )  # fmt: skip


def _revoke(service: Service, team: str, form: FormData) -> tuple[str, str]:
    identity = int(_number(form, "id"))
    revoke_token(service.database, identity, team=team)
    return "token revoked", str(identity)


def _add_webhook(service: Service, team: str, form: FormData) -> tuple[str, str]:
    url = _text(form, "url")
    hours = _number(form, "hours") if form.get("hours") else None
    Webhook(url, private=service.settings.private_webhooks).check_address()
    what = "new_fingerprint" if hours is None else "gpu_hours"
    made = add_rule(
        service.database, team, url, "new_fingerprint" if hours is None else "gpu_hours", hours
    )
    return "webhook created", f"{made.host} ({what})"


def _remove_webhook(service: Service, team: str, form: FormData) -> tuple[str, str]:
    identity = int(_number(form, "id"))
    remove_rule(service.database, team, identity)
    return "webhook removed", str(identity)


def _add_owner(service: Service, team: str, form: FormData) -> tuple[str, str]:
    rule = issues.add_owner_rule(
        service.database, team, _text(form, "kind"), _text(form, "pattern"), _text(form, "owner")
    )
    return "ownership rule added", f"{rule.kind} {rule.pattern}: {rule.owner}"


def _remove_owner(service: Service, team: str, form: FormData) -> tuple[str, str]:
    identity = int(_number(form, "id"))
    issues.remove_owner_rule(service.database, team, identity)
    return "ownership rule removed", str(identity)


def _prune(service: Service, team: str, form: FormData) -> tuple[str, str]:
    days = _number(form, "days")
    if not _LEAST_DAYS <= days <= _MOST_DAYS:
        raise InputError(f"write {_LEAST_DAYS} to {_MOST_DAYS} days")
    done = prune(service.database, before=time.time() - days * 86_400, team=team)
    return "logs pruned", f"of {done.jobs} jobs that ended more than {days:g} days ago"


_ACTS: dict[str, Callable[[Service, str, FormData], tuple[str, str]]] = {
    "revoke": _revoke,
    "webhook": _add_webhook,
    "webhook-remove": _remove_webhook,
    "owner": _add_owner,
    "owner-remove": _remove_owner,
    "prune": _prune,
}


def _text(form: FormData, name: str) -> str:
    text = str(form.get(name, "")).strip()
    if not 0 < len(text) <= _LONGEST:
        raise InputError(f"{name}: write 1 to {_LONGEST} characters")
    return text


def _number(form: FormData, name: str) -> float:
    try:
        number = float(_text(form, name))
    except ValueError as error:
        raise InputError(f"{name} is not a number") from error
    if not 0 <= number < 1 << 53:
        raise InputError(f"{name} is not a positive number")
    return number
