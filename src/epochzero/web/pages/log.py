"""Log viewer: a range of lines, each with an anchor."""

from __future__ import annotations

from typing import Annotated

from fastapi import HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse

from epochzero.redact import redact_log
from epochzero.store.database import Database
from epochzero.store.job_details import (
    AttemptDetails,
    JobDetails,
    RankDetails,
    job_details,
    read_log,
)
from epochzero.store.logs import Lines, lines_of
from epochzero.web.access import Reads
from epochzero.web.pages.responses import Action, page, pages_router
from epochzero.web.problems import or_404
from epochzero.web.state import Store

router = pages_router()

COUNT = 300
"""Number of lines per page."""
_ABOVE = 40
"""Number of lines shown above the linked line."""


@router.get("/jobs/{identity}/attempts/{number}/ranks/{rank_id}/logs/{name}", response_model=None)
def log(
    request: Request,
    viewer: Reads,
    store: Store,
    identity: str,
    number: int,
    rank_id: int,
    name: str,
    line: Annotated[int | None, Query(ge=1)] = None,
    first: Annotated[int | None, Query(ge=1)] = None,
    raw: bool = False,
) -> Response | StreamingResponse:
    """Shows a part of a log, or returns the whole log as a file."""
    with or_404(f"No job has the ID {identity}."):
        job = job_details(store, identity, team=viewer.team)
    attempt, rank = _rank(job, number, rank_id)
    if raw:
        data = read_log(
            store, identity, attempt=number, name=name, rank_id=rank_id, text=redact_log
        )
        headers = {"Content-Disposition": f'attachment; filename="{rank_id}.log"'}
        return StreamingResponse(data, media_type="text/plain; charset=utf-8", headers=headers)
    begin = first or max(1, (line or 1) - _ABOVE)
    with or_404():
        found = range_of(store, identity, number, rank_id, name, begin, COUNT)
    root = (rank.diagnosis or {}).get("root") or {}
    root_line = root.get("line") if log_name(rank, str(root.get("file", ""))) == name else None
    return page(
        request, viewer, "log",
        title=f"Log {name} of {job.summary.name}",
        now=_now(found, root_line, identity),
        exports=(),
        job=job.summary,
        attempt=attempt,
        rank=rank,
        rank_name=rank_name(rank),
        name=name,
        found=found,
        marked=line,
        root_line=root_line,
        count=COUNT,
    )  # fmt: skip


def range_of(
    store: Database, identity: str, number: int, rank_id: int, name: str, first: int, count: int
) -> Lines:
    """Lines of a log.

    Raises:
        InputError: no such log, or it is not stored.
        StoreError: the database does not respond.
    """
    parts = read_log(store, identity, attempt=number, name=name, rank_id=rank_id, text=redact_log)
    return lines_of(parts, first, count)


def log_name(rank: RankDetails, file: str) -> str:
    """The log of a rank that a diagnosis names by its file; empty for none."""
    stem = file.rpartition("/")[2].partition(".")[0]
    names = [log.name for log in rank.logs]
    return stem if stem in names else ""


def rank_name(rank: RankDetails) -> str:
    """Display name of a rank."""
    return rank.host if rank.rank is None else f"rank {rank.rank} on {rank.host}"


def _rank(job: JobDetails, number: int, rank_id: int) -> tuple[AttemptDetails, RankDetails]:
    for attempt in job.attempts:
        for rank in attempt.ranks:
            if attempt.number == number and rank.id == rank_id:
                return attempt, rank
    raise HTTPException(404, "The job has no such log.")


def _now(found: Lines, root_line: int | None, identity: str) -> tuple[Action, ...]:
    back = Action("Return to the diagnosis on the job's page.", link=f"/jobs/{identity}")
    if root_line is None:
        return (back,)
    if found.first <= root_line < found.first + len(found.lines):
        return (
            Action(f"Read line {root_line}: it shows the root cause.", link=f"#L{root_line}"),
            back,
        )
    link = f"?line={root_line}#L{root_line}"
    return (Action(f"Jump to line {root_line}, which shows the root cause.", link=link), back)
