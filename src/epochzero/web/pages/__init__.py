"""The web pages, rendered on the server; no page requires scripts.

One module per page, with a template of the same name. Pages read only data of the viewer's team, and are also
available as CSV and JSON: ``?format=csv``.
"""

from fastapi import APIRouter

from epochzero.web.pages import (
    admin,
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

router = APIRouter(include_in_schema=False)
for _page in (overview, jobs, job, log, failures, failure, compare, targets, report, admin):
    router.include_router(_page.router)
