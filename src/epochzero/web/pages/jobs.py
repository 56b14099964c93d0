"""Page of the list of jobs, searched and filtered by its URL, with pagination."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from epochzero import taxonomy
from epochzero.store.failure_notes import merged_with
from epochzero.store.queries import MOST_SEARCHED, SORTS, JobFilter, JobPage, job_page, with_search
from epochzero.store.saved_searches import remove_search, save_search, saved_searches
from epochzero.store.search import end_of, time_of
from epochzero.store.states import JOB_STATES
from epochzero.web.access import CheckedForm, Reads, Writes
from epochzero.web.exports import Export, every_job, table
from epochzero.web.pages.responses import Action, Format, address, page, pages_router
from epochzero.web.state import ServiceState, Store

router = pages_router()

COLUMNS = (
    "id", "name", "state", "title", "category", "fingerprint", "user", "host", "target", "launcher",
    "started", "ended", "attempts", "gpus", "gpu_hours",
)  # fmt: skip
_PAGE = 50
_NOT_IN_FORM = ("q", "sort", "fingerprint", "target")
"""Parameters that are set outside of the form of filters."""
MOST_EXPORTED = 100_000
_FIRST = (
    Action("Send the first job: put this before its command, on the machine where the job runs.",
         command="epochzero run --send {server} -- python train.py"),
    Action("Or send a finished Slurm job with its log.",
         command="epochzero record --job-id 4242 --send {server}"),
)  # fmt: skip
Word = Annotated[str, Query(max_length=200)]


@router.get("/jobs")
def jobs(
    request: Request,
    viewer: Reads,
    store: Store,
    q: Word = "",
    state: Word = "",
    category: Word = "",
    fingerprint: Word = "",
    user: Word = "",
    host: Word = "",
    target: Word = "",
    name: Word = "",
    since: Word = "",
    until: Word = "",
    sort: Word = "newest",
    after: Word = "",
    format: Format = "html",
) -> Response:
    """Shows the jobs of a team, 50 per page."""
    fingerprints = merged_with(store, viewer.team, fingerprint) if fingerprint else None
    wanted = JobFilter(
        team=viewer.team,
        state=state or None,
        category=category or None,
        same_failure=fingerprints,
        user=user or None,
        host=host or None,
        target=target or None,
        name=name or None,
        since=time_of(since) if since else None,
        until=end_of(until) if until else None,
        limit=_PAGE,
    )
    wanted = with_search(wanted, q.strip()) if q.strip() else wanted
    if format != "html":
        listed = islice(every_job(store, wanted, sort), MOST_EXPORTED)
        rows = (tuple(getattr(job, name) for name in COLUMNS) for job in listed)
        return table(format, Export("jobs", COLUMNS, rows))
    found = job_page(store, wanted, sort=sort, after=after)
    asked = {
        "q": q, "state": state, "category": category, "fingerprint": fingerprint, "user": user,
        "host": host, "target": target, "name": name, "since": since, "until": until,
        "sort": sort,
    }  # fmt: skip
    is_filtered = any(value for word, value in asked.items() if word != "sort")
    return page(
        request, viewer, "jobs",
        title="Jobs",
        now=_now(request, found, is_filtered=is_filtered),
        found=found,
        asked=asked,
        merged=len(fingerprints or ()) - 1,
        is_filtered=is_filtered,
        only_search=not any(asked[word] for word in asked if word not in _NOT_IN_FORM),
        is_first=not after,
        moment=time.time(),
        is_cut=found.after and len(found.jobs) < _PAGE,
        searched=MOST_SEARCHED,
        states=JOB_STATES,
        sorts=tuple(SORTS),
        categories=tuple(taxonomy.categories().values()),
        searches=saved_searches(store, viewer.team, "/jobs"),
        query=request.url.query,
    )  # fmt: skip


@router.post("/searches")
def save(viewer: Writes, service: ServiceState, form: CheckedForm) -> Response:
    """Saves a search, or deletes one if ``remove`` is given, then redirects to its page."""
    name, place = str(form.get("name", "")).strip(), str(form.get("address", ""))
    if form.get("remove"):
        remove_search(service.database, viewer.team, name)
        return RedirectResponse("/admin", 303)
    save_search(service.database, viewer.team, name, place, viewer.name)
    return RedirectResponse(place, 303)


def _now(request: Request, page_of_jobs: JobPage, *, is_filtered: bool) -> Sequence[Action]:
    found = page_of_jobs.jobs
    if not found and page_of_jobs.after:
        text = f"None of the {MOST_SEARCHED:,} searched jobs matches. Search the next ones."
        return (Action(text, link=address(request, after=page_of_jobs.after)),)
    if not found and is_filtered:
        return (Action("No job matches. Remove a filter or show all jobs.", link="/jobs"),)
    if not found:
        return first_steps(request)
    failed = next((job for job in found if job.state in ("failed", "lost")), None)
    if failed is None:
        return (Action("None of these jobs failed. Review recent failures.", link="/failures"),)
    text = f"Open the newest failure, {failed.name}. Its page shows the cause and the fix."
    return (Action(text, link=f"/jobs/{failed.id}"),)


def first_steps(request: Request) -> Sequence[Action]:
    """Instructions for sending the first job."""
    server = str(request.base_url).rstrip("/")
    return tuple(replace(step, command=step.command.replace("{server}", server)) for step in _FIRST)
