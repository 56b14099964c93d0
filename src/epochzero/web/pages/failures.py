"""Page of the issues of a period, one row per fingerprint."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from epochzero.number_formats import counted
from epochzero.store.issues import IssueFilter, IssueSummary, issue_summaries
from epochzero.store.overview import FingerprintCount, by_day, fingerprints
from epochzero.store.queries import EVERY_JOB, with_filters
from epochzero.store.saved_searches import saved_searches
from epochzero.store.search import parse_search
from epochzero.web.access import Reads
from epochzero.web.exports import Export, table
from epochzero.web.pages.period import asked_period
from epochzero.web.pages.responses import (
    Action,
    Format,
    failure_address,
    page,
    pages_router,
    why,
)
from epochzero.web.state import Store

router = pages_router()

_COLUMNS = ("fingerprint", "category", "title", "jobs", "gpu_hours", "first", "last", "new")
_SHOWN, _EXPORTED = 50, 10_000
_MOST_BARS = 62
_OF_ISSUES = ("is", "owner", "category", "since", "until")
"""Filters of a search that do not apply to single jobs."""
_STATES = (
    ("", "any"), ("open", "open"), ("new", "new"), ("regressed", "regressed"),
    ("ongoing", "ongoing"), ("resolved", "resolved"), ("ignored", "ignored"),
)  # fmt: skip


@router.get("/failures", response_model=None)
def failures(
    request: Request,
    viewer: Reads,
    store: Store,
    days: Annotated[int | None, Query(ge=1, le=3650)] = None,
    since: str = "",
    until: str = "",
    category: Annotated[str, Query(max_length=200)] = "",
    q: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
    mine: bool = False,
    new: bool = False,
    sort: Literal["jobs", "gpu_hours"] = "jobs",
    format: Format = "html",
) -> Response:
    """Shows the issues of a period, the most frequent or most expensive first."""
    query = parse_search(q.strip())
    asked = asked_period(days, query.filters.get("since", since), query.filters.get("until", until))
    wanted = IssueFilter(
        query.filters.get("is", state),
        viewer.name if mine else query.filters.get("owner", ""),
        query.text,
    )
    of_jobs = {name: text for name, text in query.filters.items() if name not in _OF_ISSUES}
    found = fingerprints(
        store, viewer.team, asked.period, category=query.filters.get("category", category) or None,
        only_new=new, wanted=wanted, of_jobs=with_filters(EVERY_JOB, of_jobs), sort=sort,
        limit=_SHOWN if format == "html" else _EXPORTED,
    )  # fmt: skip
    names = [count.fingerprint for count in found]
    issues = issue_summaries(store, viewer.team, names, time.time())
    if format != "html":
        rows = [(*(getattr(c, name) for name in _COLUMNS), *_issue(issues, c)) for c in found]
        return table(format, Export("issues", (*_COLUMNS, "state", "owner", "first_ever"), rows))
    short = asked.length <= _MOST_BARS
    return page(
        request, viewer, "failures",
        title="Issues",
        now=_now(found, issues, is_search=bool(q or state or category or mine or new)),
        asked=asked,
        found=found,
        category=category,
        q=q,
        state=state,
        states=_STATES,
        mine=mine,
        sort=sort,
        issues=issues,
        days=by_day(store, viewer.team, asked.period, names) if short else {},
        searches=saved_searches(store, viewer.team, "/failures"),
        query=request.url.query,
        most=_SHOWN,
    )  # fmt: skip


def _issue(
    issues: Mapping[str, IssueSummary], fingerprint_count: FingerprintCount
) -> tuple[object, ...]:
    issue = issues.get(fingerprint_count.fingerprint)
    return (
        (issue.state, issue.owner, issue.first_seen)
        if issue
        else ("ongoing", "", fingerprint_count.first)
    )


def _now(
    found: Sequence[FingerprintCount], issues: Mapping[str, IssueSummary], *, is_search: bool
) -> Sequence[Action]:
    closed = {name for name, issue in issues.items() if issue.state in ("resolved", "ignored")}
    open_ones = [count for count in found if count.fingerprint not in closed]
    if not found and is_search:
        return (
            Action("No issue matches. Search all jobs, or choose a longer period.", link="/jobs"),
        )
    if not open_ones:
        text = "There are no open issues. Choose a longer period or review all jobs."
        return (Action(text, link="/jobs"),)
    costliest = max(open_ones, key=lambda count: (count.gpu_hours, count.jobs))
    title = costliest.title or why(costliest.category)
    cost = f", {costliest.gpu_hours:,.0f} GPU hours" if costliest.gpu_hours >= 1 else ""
    text = f"Start with {title}: {counted(costliest.jobs, 'job')}{cost}."
    return (Action(text, link=failure_address(costliest.fingerprint)),)
