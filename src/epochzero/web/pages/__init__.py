"""The pages of the service, rendered here; no page needs a script.

One module a page, with its template of the same name. A page asks the store for its viewer's team only, and
is there as CSV and as JSON too: ``?format=csv``.
"""

from fastapi import APIRouter

from epochzero.web.pages import (
    compare,
    failure,
    failures,
    job,
    jobs,
    log,
    overview,
    report,
    targets,
)

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
for _page in (overview, jobs, job, log, failures, failure, compare, targets, report):
    router.include_router(_page.router)
