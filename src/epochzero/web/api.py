"""API for programs: jobs, logs, fingerprints, totals, tables."""

from __future__ import annotations

import itertools
from dataclasses import astuple, fields
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from epochzero.redact import redact, redact_log
from epochzero.store.daily_counts import END, Period
from epochzero.store.failure_notes import (
    Known,
    add_note,
    known,
    merge,
    resolve,
)
from epochzero.store.issues import assign, ignore
from epochzero.store.job_details import job_details, read_log
from epochzero.store.logs import cut_lines
from epochzero.store.overview import FingerprintCount, Overview, overview
from epochzero.store.overview import fingerprints as count_fingerprints
from epochzero.store.queries import JobFilter, JobPage, JobSummary, job_page, with_search
from epochzero.store.teams import Viewer, is_own, job_key
from epochzero.web.access import Reads, Writes, audit
from epochzero.web.exports import Export, every_job, table
from epochzero.web.problems import or_404, problem
from epochzero.web.state import ServiceState, Store

router = APIRouter(prefix="/api/v1", tags=["asking"])

_MOST_LINES = 10_000
_PAGE = 1000
Fingerprint = Annotated[str, InPath(max_length=200)]
Since = Annotated[float, Query(ge=0, lt=1e11, description="Seconds since the epoch")]
Text = Annotated[str, Field(max_length=10_000, min_length=1)]
_MISSING = problem(404, "Not found in your team")


class Filter(BaseModel):
    """Conditions for jobs; see `epochzero.store.queries.JobFilter`."""

    state: str | None = None
    category: str | None = None
    fingerprint: str | None = None
    user: str | None = None
    host: str | None = None
    target: str | None = None
    name: str | None = None
    search: Annotated[str, Field(max_length=500)] | None = None
    partition: str | None = None
    image: str | None = None
    since: float | None = None
    until: float | None = None

    def of(self, viewer: Viewer, limit: int) -> JobFilter:
        """The filter for the store, restricted to one team."""
        wanted = JobFilter(**self.model_dump(), team=viewer.team, limit=limit)
        return with_search(wanted, self.search) if self.search else wanted


def own_job(viewer: Reads, store: Store, job: Annotated[str, InPath(max_length=100)]) -> str:
    """The stored ID of a job of the viewer's team, as a dependency.

    Raises:
        HTTPException: 404 if the job does not exist in the team.
    """
    key = job_key(viewer.team, job)
    if not is_own(store, viewer.team, key):
        raise HTTPException(404, "no such job in your team")
    return key


OwnJob = Annotated[str, Depends(own_job)]
Filters = Annotated[Filter, Query()]


@router.get("/jobs")
def jobs(
    viewer: Reads,
    store: Store,
    wanted: Filters,
    sort: Literal["newest", "oldest", "costliest"] = "newest",
    limit: Annotated[int, Query(ge=1, le=_PAGE)] = 50,
    after: Annotated[str, Query(max_length=200)] = "",
) -> JobPage:
    """List the jobs that match a filter; pass `after` of the response to get the next page."""
    return job_page(store, wanted.of(viewer, limit), sort=sort, after=after)


@router.get("/jobs/{job}", responses=_MISSING)
def job(key: OwnJob, store: Store) -> dict[str, Any]:
    """Return all data about a job, in the JSON form `epochzero.job/1`."""
    return dict(job_details(store, key).to_dict())


@router.get("/jobs/{job}/logs/{name}", responses=_MISSING, response_class=StreamingResponse)
def log(
    key: OwnJob,
    store: Store,
    name: Annotated[str, InPath(max_length=100)],
    attempt: Annotated[int | None, Query(ge=1, le=100_000)] = None,
    first: Annotated[int, Query(ge=1, le=1 << 40, description="The first line")] = 1,
    lines: Annotated[int | None, Query(ge=1, le=_MOST_LINES, description="So many")] = None,
) -> StreamingResponse:
    """Return a log such as `output`: the whole log, or some lines."""
    parts = read_log(store, key, attempt=attempt, name=name, text=redact_log)
    parts = cut_lines(parts, first, lines)
    with or_404():
        begin = next(parts, b"")
    whole = itertools.chain((begin,), parts)
    return StreamingResponse(whole, media_type="text/plain; charset=utf-8")


@router.get("/overview")
def numbers(viewer: Reads, store: Store, since: Since = 0.0) -> Overview:
    """Return totals of the team's jobs."""
    return overview(store, viewer.team, since=since)


@router.get("/fingerprints")
def fingerprints(
    viewer: Reads,
    store: Store,
    since: Since = 0.0,
    limit: Annotated[int, Query(ge=1, le=_PAGE)] = 100,
) -> list[FingerprintCount]:
    """List failures by fingerprint, the most expensive first."""
    period = Period(since, END)
    return count_fingerprints(store, viewer.team, period, sort="gpu_hours", limit=limit)


@router.get("/fingerprints/{fingerprint}", responses=_MISSING)
def fingerprint(viewer: Reads, store: Store, fingerprint: Fingerprint) -> Known:
    """Return the team's records about a fingerprint."""
    with or_404():
        return known(store, viewer.team, fingerprint)


class NoteText(BaseModel):
    """A note."""

    text: Text


class Verdict(BaseModel):
    """Changes to an issue; None keeps a value, an empty string clears it."""

    resolution: Annotated[str, Field(max_length=10_000)] | None = None
    resolved_commit: Annotated[str, Field(max_length=100)] = ""
    owner: Annotated[str, Field(max_length=100)] | None = None
    ignore_days: Annotated[float, Field(ge=0, le=365, allow_inf_nan=False)] | None = None
    merged_into: Annotated[str, Field(max_length=200)] | None = None


@router.post("/fingerprints/{fingerprint}/notes", responses=_MISSING)
def add_remark(
    viewer: Writes,
    service: ServiceState,
    request: Request,
    fingerprint: Fingerprint,
    note: NoteText,
) -> Known:
    """Add a note."""
    store = service.database
    with or_404():
        add_note(store, viewer.team, fingerprint, viewer.name, redact(note.text))
    audit(service, viewer, request, "note added", fingerprint)
    return known(store, viewer.team, fingerprint)


@router.patch("/fingerprints/{fingerprint}", responses=_MISSING)
def change(
    viewer: Writes,
    service: ServiceState,
    request: Request,
    fingerprint: Fingerprint,
    verdict: Verdict,
) -> Known:
    """Resolve, assign or ignore (for 0 days: no longer) an issue, or merge it into another."""
    store = service.database
    with or_404():
        if verdict.owner is not None:
            assign(store, viewer.team, fingerprint, verdict.owner)
            audit(service, viewer, request, "assigned", f"{fingerprint} to {verdict.owner}")
        if verdict.ignore_days is not None:
            ignore(store, viewer.team, fingerprint, verdict.ignore_days)
            done = "ignored" if verdict.ignore_days else "no longer ignored"
            audit(service, viewer, request, done, fingerprint)
        if verdict.resolution is not None:
            text = redact(verdict.resolution)
            commit = verdict.resolved_commit
            resolve(store, viewer.team, fingerprint, viewer.name, text, commit)
            audit(service, viewer, request, "resolved" if text else "reopened", fingerprint)
        if verdict.merged_into is not None:
            merge(store, viewer.team, fingerprint, verdict.merged_into)
            what = (
                f"{fingerprint} into {verdict.merged_into}" if verdict.merged_into else fingerprint
            )
            action = "merged" if verdict.merged_into else "split"
            audit(service, viewer, request, action, what)
    return known(store, viewer.team, fingerprint)


@router.get("/export", response_class=StreamingResponse)
def export(
    viewer: Reads,
    store: Store,
    wanted: Filters,
    format: Literal["csv", "jsonl"] = "jsonl",
    sort: Literal["newest", "oldest", "costliest"] = "newest",
) -> StreamingResponse:
    """Export all jobs that match a filter as a table."""
    found = every_job(store, wanted.of(viewer, _PAGE), sort)
    names = [field.name for field in fields(JobSummary)]
    return table(format, Export("jobs", names, (astuple(job) for job in found)))
