"""What jobs send: journals and logs in pieces, and logs of jobs that ran without us.

A piece is acknowledged when it is safe on disk; a diagnosed log when the store has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError

from epochzero.diagnose import Diagnosis
from epochzero.run.journal import NAME
from epochzero.store.webhooks import rules
from epochzero.web.access import Viewer, Writes, too_many
from epochzero.web.bodies import body, pieces
from epochzero.web.diagnosing import About
from epochzero.web.spool import Full, Gap, appending
from epochzero.web.state import Service, ServiceState

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["sending"])

_MOST_IN_BULK = 10_000
_ATTEMPT = "/jobs/{job}/attempts/{attempt}/ranks/{rank}"
_LOGS = r"^(output|rank\d{1,5})(\.\d{1,9})?\.log$"


class Acknowledged(BaseModel):
    """What is safe: bytes of the file that are here."""

    size: int


class Received(BaseModel):
    """Bytes of each file of an attempt that are here."""

    journal: int
    logs: dict[str, int]


class Kept(BaseModel):
    """A job that was diagnosed.

    Attributes:
        job: its identity here.
        new: whether it was not here before.
    """

    job: str
    new: bool
    outcome: str
    category: str
    fingerprint: str
    title: str


class KeptWhole(Kept):
    """A job that was diagnosed, with the whole diagnosis."""

    diagnosis: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt in the spool: whose, and its folder."""

    team: str
    job: str
    folder: Path


def _place(
    viewer: Writes,
    service: ServiceState,
    job: Annotated[
        str, InPath(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="Identity of the job")
    ],
    attempt: Annotated[int, InPath(ge=1, le=100_000)],
    rank: Annotated[str, InPath(pattern=r"^(all|\d{1,6})$", description="A number, or all")],
) -> Place:
    number = None if rank == "all" else int(rank)
    return Place(viewer.team, job, service.spool.attempt(viewer.team, job, attempt, number))


Attempt = Annotated[Place, Depends(_place)]
Offset = Annotated[int, Query(ge=0, le=1 << 50, description="Where in the file the piece begins")]
_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"description": "No valid token"},
    403: {"description": "A reader's token"},
    409: {"description": "The piece does not follow what is here; size says how much that is"},
    413: {"description": "Too large"},
    415: {"description": "A compression that is not known"},
    429: {"description": "Too much; Retry-After says when to try again"},
    507: {"description": "No room"},
}


@router.get(f"{_ATTEMPT}/received", responses=_REFUSALS)
def received(attempt: Attempt, service: ServiceState) -> Received:
    """How much of an attempt is here, so that a sender goes on there."""
    sizes = dict(service.spool.sizes(attempt.folder))
    return Received(journal=sizes.pop(NAME, 0), logs=sizes)


@router.put(f"{_ATTEMPT}/journal", responses=_REFUSALS)
async def journal(
    request: Request, attempt: Attempt, service: ServiceState, offset: Offset = 0
) -> Acknowledged:
    """Appends a piece to a journal (`journal.jsonl`), gzip, zstd or plain."""
    return await _append(request, service, attempt, NAME, offset)


@router.put(f"{_ATTEMPT}/logs/{{name}}", responses=_REFUSALS)
async def log(
    request: Request,
    attempt: Attempt,
    service: ServiceState,
    name: Annotated[str, InPath(pattern=_LOGS, description="Such as output.log, output.2.log")],
    offset: Offset = 0,
) -> Acknowledged:
    """Appends a piece to a log, gzip, zstd or plain. Logs come before the journal's end."""
    return await _append(request, service, attempt, name, offset)


async def _append(
    request: Request, service: Service, attempt: Place, name: str, offset: int
) -> Acknowledged:
    _check_room(service, attempt.team)
    limits = service.settings.limits
    path = attempt.folder / name
    try:
        with appending(path, offset, most=limits.file_bytes) as piece:
            async for data in pieces(request, limits.text_bytes):
                piece.write(data)
            await run_in_threadpool(piece.sync)
            size, new = piece.size, piece.size - piece.begun
    except Gap as error:
        raise HTTPException(409, {"message": str(error), "size": error.size}) from error
    except Full as error:
        raise HTTPException(507, str(error), {"Retry-After": "60"}) from error
    _count(service, attempt.team, "journal" if name == NAME else "log", new)
    service.intake.grown(attempt.team, path, new)
    return Acknowledged(size=size)


@router.post("/diagnose-and-store", responses=_REFUSALS)
async def diagnose_and_store(
    request: Request, viewer: Writes, service: ServiceState, about: Annotated[About, Query()]
) -> KeptWhole:
    """Diagnoses the log in the body, of a job that ran without EpochZero, and keeps it."""
    _check_room(service, viewer.team)
    text = await body(request, service.settings.limits.text_bytes)
    kept = await run_in_threadpool(_keep, service, viewer, [(about, text)])
    answer, diagnosis = kept[0]
    return KeptWhole(**answer.model_dump(), diagnosis=dict(diagnosis.to_dict()))


class Line(About):
    """One job of many: its log, and what else is known of it."""

    log: str


@router.post(
    "/diagnose-and-store/bulk",
    responses=_REFUSALS,
    openapi_extra={
        "requestBody": {
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            "required": True,
        }
    },
)
async def diagnose_and_store_many(
    request: Request, viewer: Writes, service: ServiceState
) -> list[Kept]:
    """Diagnoses and keeps many small logs, one a line: `{"log": "...", "name": "..."}`; all or none."""
    _check_room(service, viewer.team)
    text = await body(request, service.settings.limits.text_bytes)
    kept = await run_in_threadpool(lambda: _keep(service, viewer, _lines(text)))
    return [answer for answer, _ in kept]


def _lines(text: bytes) -> list[tuple[About, bytes]]:
    """The jobs of a body.

    Raises:
        HTTPException: 413 for too many, 422 for a line that is none; it says which.
    """
    lines = [line for line in text.split(b"\n") if line.strip()]
    if len(lines) > _MOST_IN_BULK:
        raise HTTPException(413, f"a request has at most {_MOST_IN_BULK} jobs")
    found: list[tuple[About, bytes]] = []
    for number, line in enumerate(lines, 1):
        try:
            one = Line.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            told = f"line {number}: {place}: {first['msg']}; nothing of this request was kept"
            raise HTTPException(422, told) from error
        found.append((one, one.log.encode("utf-8", "replace")))
    return found


def _keep(
    service: Service, viewer: Viewer, given: list[tuple[About, bytes]]
) -> list[tuple[Kept, Diagnosis]]:
    found = [service.diagnosing.ending(viewer.team, *one) for one in given]
    new = service.keeping.keep([ending for _, _, ending in found])
    service.metrics.diagnosed.inc(len(found))
    _count(service, viewer.team, "diagnosed", sum(len(text) for _, text in given))
    answers = []
    for job, diagnosis, ending in found:
        is_new = ending.identity in new
        answer = Kept(
            job=job,
            new=is_new,
            outcome=diagnosis.outcome,
            category=diagnosis.category or "",
            fingerprint=diagnosis.fingerprint or "",
            title=diagnosis.title or "",
        )
        answers.append((answer, diagnosis))
    if rules(service.database, viewer.team):
        for answer, _ in answers:
            if answer.new:
                service.rules.look_at(answer.job, viewer.team)
    return answers


def _check_room(service: Service, team: str) -> None:
    """Refuses what a team has no room or no rate for."""
    if wait := service.megabytes.wait(team):
        raise too_many(wait)
    if service.intake.used(team) > service.settings.limits.team_bytes:
        raise too_many(60.0)


def _count(service: Service, team: str, what: str, size: int) -> None:
    service.megabytes.spend(team, size / 1e6)
    service.metrics.received.labels(what).inc(size)
