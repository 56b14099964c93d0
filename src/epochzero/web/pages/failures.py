"""Page of the failures of a period, one row per fingerprint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from epochzero.store.failures import resolutions
from epochzero.store.overview import FingerprintCount, fingerprints
from epochzero.web.access import Reads
from epochzero.web.pages.period import asked_period
from epochzero.web.pages.responses import (
    Export,
    Format,
    Step,
    failure_address,
    page,
    pages_router,
    table,
    why,
)
from epochzero.web.state import Store

router = pages_router()

_COLUMNS = ("fingerprint", "category", "title", "jobs", "gpu_hours", "first", "last", "new")
_SHOWN, _EXPORTED = 100, 10_000


@router.get("/failures", response_model=None)
def failures(
    request: Request,
    viewer: Reads,
    store: Store,
    days: Annotated[int | None, Query(ge=1, le=3650)] = None,
    since: str = "",
    until: str = "",
    category: Annotated[str, Query(max_length=200)] = "",
    new: bool = False,
    sort: Literal["jobs", "gpu_hours"] = "jobs",
    format: Format = "html",
) -> Response:
    """Shows the most frequent or most expensive failures of a period."""
    asked = asked_period(days, since, until)
    found = fingerprints(
        store, viewer.team, asked.period, category=category or None, only_new=new,
        sort=sort, limit=_SHOWN if format == "html" else _EXPORTED,
    )  # fmt: skip
    if format != "html":
        rows = [tuple(getattr(one, name) for name in _COLUMNS) for one in found]
        return table(format, Export("failures", _COLUMNS, rows))
    resolved = resolutions(store, viewer.team)
    return page(
        request, viewer, "failures",
        title="Failures",
        now=_now(found, resolved),
        asked=asked,
        found=found,
        only_new=new,
        category=category,
        sort=sort,
        resolved=resolved,
        most=_SHOWN,
    )  # fmt: skip


def _now(found: Sequence[FingerprintCount], resolved: Mapping[str, float]) -> Sequence[Step]:
    open_ones = [one for one in found if one.last > resolved.get(one.fingerprint, 0.0)]
    if not open_ones:
        text = "There are no open failures. Choose a longer period or review all jobs."
        return (Step(text, link="/jobs"),)
    costliest = max(open_ones, key=lambda one: one.gpu_hours)
    title = costliest.title or why(costliest.category)
    return (
        Step(f"Start with the most expensive failure: {title}. Its page shows who else is affected and what to "
"change.",
             link=failure_address(costliest.fingerprint)),
    )  # fmt: skip
