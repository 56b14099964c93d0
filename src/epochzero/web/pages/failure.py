"""Page of one failure by fingerprint: affected jobs, frequency, fixes, and the team's notes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated

from fastapi import HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from epochzero import taxonomy
from epochzero.errors import InputError
from epochzero.number_formats import counted
from epochzero.redact import redact
from epochzero.store import failure_notes, issues
from epochzero.store.database import Database
from epochzero.store.failures import FailureDetails, failure_details
from epochzero.store.overview import by_day, fingerprints
from epochzero.store.queries import JobFilter, find_jobs
from epochzero.store.teams import Viewer
from epochzero.web.access import CheckedForm, Reads, Writes, audit
from epochzero.web.pages.period import asked_period
from epochzero.web.pages.responses import Action, failure_address, page, pages_router
from epochzero.web.problems import or_404
from epochzero.web.state import ServiceState, Store

router = pages_router()

_MOST_JOBS = 20
_MOST_SUGGESTIONS = 50
_LONGEST = 4000
"""Characters of a note or a resolution."""
_LONGEST_COMMIT = 100
_LONGEST_OWNER = 100
_MOST_DAYS = 365
_DAYS = 30
_ACTIONS = {
    "note": "note added",
    "assign": "assigned",
    "ignore": "ignored",
    "show": "no longer ignored",
    "resolve": "resolved",
    "reopen": "reopened",
    "merge": "merged",
    "split": "split",
}


@router.get("/failures/{fingerprint}", response_model=None)
def failure(
    request: Request,
    viewer: Reads,
    store: Store,
    fingerprint: str,
    format: Annotated[str, Query(pattern="html|json")] = "html",
) -> Response:
    """Shows all data about a fingerprint."""
    with or_404(f"No job failed with the fingerprint {fingerprint}."):
        found = failure_details(store, viewer.team, fingerprint)
    if format == "json":
        return JSONResponse(_dict(found))
    its = JobFilter(team=viewer.team, same_failure=found.fingerprints, limit=_MOST_JOBS)
    period = asked_period(_DAYS, "", "").period
    alike = fingerprints(
        store, viewer.team, period, category=found.category, limit=_MOST_SUGGESTIONS
    )
    return page(
        request, viewer, "failure",
        title=found.title or found.category,
        now=tuple(_now(found)),
        exports=("json",),
        found=found,
        retry=taxonomy.retries().get(str(found.diagnosis.get("retry", ""))),
        jobs=find_jobs(store, its),
        days=by_day(store, viewer.team, period, [fingerprint])[fingerprint],
        alike=[count for count in alike if count.fingerprint != found.fingerprint],
        moment=time.time(),
        longest=_LONGEST,
    )  # fmt: skip


@router.post("/failures/{fingerprint}/{act}", response_model=None)
def change(
    request: Request,
    viewer: Writes,
    service: ServiceState,
    form: CheckedForm,
    fingerprint: str,
    act: str,
) -> Response:
    """Adds a note or resolution, merges or splits, then redirects to the failure's page."""
    if act not in _ACTIONS:
        raise HTTPException(404, f"Unknown action {act}.")
    store = service.database
    # Forms end lines with CRLF.
    text = redact(str(form.get("text", "")).replace("\r\n", "\n").strip())
    if act in ("note", "resolve", "merge") and not 0 < len(text) <= _LONGEST:
        raise InputError(f"write 1 to {_LONGEST} characters")
    _act(
        store, viewer, fingerprint, act, text, str(form.get("commit", "")).strip()[:_LONGEST_COMMIT]
    )
    what = {"merge": f"{fingerprint} into {text}", "assign": f"{fingerprint} to {text}"}.get(
        act, fingerprint
    )
    audit(service, viewer, request, _ACTIONS[act], what)
    return RedirectResponse(failure_address(fingerprint), 303)


def _act(
    store: Database, viewer: Viewer, fingerprint: str, act: str, text: str, commit: str
) -> None:
    """Performs one of `_ACTIONS`.

    Raises:
        InputError: the text is not valid for the action.
    """
    team, who = viewer.team, viewer.name
    if act == "note":
        failure_notes.add_note(store, team, fingerprint, who, text)
    elif act == "resolve":
        failure_notes.resolve(store, team, fingerprint, who, text, commit)
    elif act == "reopen":
        failure_notes.resolve(store, team, fingerprint, who, "")
    elif act in ("merge", "split"):
        failure_notes.merge(store, team, fingerprint, text if act == "merge" else "")
    elif act == "assign":
        issues.assign(store, team, fingerprint, text[:_LONGEST_OWNER])
    else:
        issues.ignore(store, team, fingerprint, _days(text) if act == "ignore" else 0.0)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError as error:
        raise InputError("write a number of days") from error
    if not 0 < days <= _MOST_DAYS:
        raise InputError(f"write a number of days, at most {_MOST_DAYS}")
    return days


def _now(found: FailureDetails) -> Iterator[Action]:
    if found.issue.merged_into:
        yield Action(
            "It is merged into another failure.", link=failure_address(found.issue.merged_into)
        )
    if found.issue.state == "resolved":
        yield Action("It is resolved and has not recurred. No action is required.")
        return
    if found.returned:
        yield Action(
            f"It recurred in {counted(found.returned, 'job')} after it was resolved. Review the newest job."
        )
    for fix in found.diagnosis.get("fixes", ())[:3]:
        yield Action(str(fix))
    yield Action(
        "When it is fixed, mark it as resolved below. People who meet this failure see the fix first."
    )


def _dict(found: FailureDetails) -> dict[str, object]:
    names = (
        "fingerprint", "fingerprints", "merged_into", "category", "title", "jobs", "gpu_hours",
        "first", "first_job", "first_commit", "last", "state", "owner", "users", "hosts", "resolution",
        "resolved_by", "resolved", "resolved_commit", "regressed", "ignored_until", "returned",
    )  # fmt: skip
    return {name: getattr(found if hasattr(found, name) else found.issue, name) for name in names}
