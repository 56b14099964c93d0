"""Report page of a team's failures: the tables and figures of ``epochzero study failures``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse
from markupsafe import Markup

from epochzero.web.access import Reads
from epochzero.web.pages.period import RequestedPeriod, asked_period
from epochzero.web.pages.responses import Action, address, page, pages_router, why
from epochzero.web.report_jobs import MOST_JOBS, GeneratedReport, Wanted
from epochzero.web.state import ServiceState

router = pages_router()

_AGAIN_S = 3
_NEEDED = "matplotlib"


@router.get("/report", response_model=None)
def report(
    request: Request,
    viewer: Reads,
    service: ServiceState,
    days: Annotated[int | None, Query(ge=1, le=3650)] = None,
    since: str = "",
    until: str = "",
    format: Literal["html", "json", "zip"] = "html",
) -> Response:
    """Shows the report of a period; while it is being generated, a page that reloads itself."""
    asked = asked_period(days, since, until)
    can_study = find_spec(_NEEDED) is not None
    made = (
        service.reporting.report(_wanted(service.settings.store, viewer.team, asked))
        if can_study
        else None
    )
    if format != "html":
        return _file(made, asked, format)
    return page(
        request, viewer, "report",
        title="Failure report",
        now=tuple(_now(request, asked, made, can_study=can_study)),
        exports=("zip", "json") if made else (),
        asked=asked,
        made=made,
        body=Markup(made.body) if made else "",
        is_making=can_study and made is None,
        again=_AGAIN_S,
        most_jobs=MOST_JOBS,
    )  # fmt: skip


def _wanted(store: str, team: str, asked: RequestedPeriod) -> Wanted:
    period = asked.period
    source = f"{team or 'jobs'}, {asked.first} to {asked.last}"
    return Wanted(store, team, source, period.since, period.until)


def _file(made: GeneratedReport | None, asked: RequestedPeriod, form: str) -> Response:
    if made is None:
        body = {"detail": "the report is not ready yet; try again"}
        return JSONResponse(body, 503, {"Retry-After": str(_AGAIN_S)})
    name = f"failures-{asked.first}-{asked.last}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if form == "json":
        return JSONResponse(made.summary, headers=headers)
    return Response(made.archive, media_type="application/zip", headers=headers)


def _now(
    request: Request, asked: RequestedPeriod, made: GeneratedReport | None, *, can_study: bool
) -> Iterator[Action]:
    if not can_study:
        yield Action(
            "Reports require packages that are not installed. Install them in the service's environment.",
            command="pip install 'epochzero[study]'",
        )
        return
    if made is None:
        yield Action(
            "The report is being generated. This page reloads automatically.",
            link=address(request),
        )
        return
    failed = made.summary["categories"]
    if not failed:
        yield Action("There are no failures in this period. Choose a longer one.")
        return
    most = max(failed, key=lambda word: failed[word]["count"])
    words = {"category": most, "since": asked.first, "until": asked.last}
    text = f"Start with the most frequent failure: {why(most)}, {100 * failed[most]['share']:.0f} % of the failures."
    yield Action(text, link=f"/failures?{urlencode(words)}")
    yield Action(
        "Download the report, its tables and its figures as one file to share.",
        link=address(request, format="zip"),
    )
