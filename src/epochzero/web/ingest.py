"""Receives jobs: journals and logs in parts, and logs of jobs that ran without EpochZero.

A part is acknowledged when it is synced to disk; a diagnosed log when it is in the store.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError

from epochzero.run.records.journal import NAME
from epochzero.web.access import Writes
from epochzero.web.bodies import pieces
from epochzero.web.limits import too_many
from epochzero.web.log_diagnosis import About, DiagnosedJob, diagnosed_job
from epochzero.web.problems import problem
from epochzero.web.settings import ServerLimits
from epochzero.web.spool import Busy, Full, Gap, appending, full
from epochzero.web.state import Service, ServiceState

router = APIRouter(prefix="/api/v1", tags=["sending"])

_MOST_IN_BULK = 10_000
_READ_BYTES = 1 << 20
_JOB_MEMORY = 24 << 10
_ATTEMPT = "/jobs/{job}/attempts/{attempt}/ranks/{rank}"
_PAUSES_S = (0.05, 0.2, 0.8)
"""Pauses while a file is being released."""
_LOGS = r"^(output|rank\d{1,5})(\.\d{1,9})?\.log$"


class Acknowledged(BaseModel):
    """The number of synced bytes of the file."""

    size: int


class Received(BaseModel):
    """The number of received bytes of each file of an attempt."""

    journal: int
    logs: dict[str, int]


class StoredDiagnosis(BaseModel):
    """A diagnosed job.

    Attributes:
        job: its ID on this server.
        new: whether it was not stored before.
    """

    job: str
    new: bool
    outcome: str
    category: str
    fingerprint: str
    title: str


class KeptWhole(StoredDiagnosis):
    """A diagnosed job with the complete diagnosis."""

    diagnosis: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SpooledAttempt:
    """An attempt in the spool: its team and directory."""

    team: str
    job: str
    folder: Path


async def _place(
    viewer: Writes,
    service: ServiceState,
    job: Annotated[str, InPath(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="Job ID")],
    attempt: Annotated[int, InPath(ge=1, le=100_000)],
    rank: Annotated[str, InPath(pattern=r"^(all|\d{1,6})$", description="A rank number, or all")],
) -> SpooledAttempt:
    number = None if rank == "all" else int(rank)
    return SpooledAttempt(
        viewer.team, job, service.spool.attempt(viewer.team, job, attempt, number)
    )


Attempt = Annotated[SpooledAttempt, Depends(_place)]
Offset = Annotated[
    int, Query(ge=0, le=1 << 50, description="Offset of this part in the file, in bytes")
]
_REFUSED_PARTS = problem(
    409, "The part does not continue the stored file; size gives the stored bytes"
)
_REFUSED_LOGS = problem(
    409, "The job was received before with a different log; nothing of this request was stored"
)


@router.get(f"{_ATTEMPT}/received")
def received(attempt: Attempt, service: ServiceState) -> Received:
    """Return the number of received bytes of an attempt, so that a sender can resume."""
    sizes = dict(service.spool.sizes(attempt.folder))
    return Received(journal=sizes.pop(NAME, 0), logs=sizes)


@router.put(f"{_ATTEMPT}/journal", responses=_REFUSED_PARTS)
async def journal(
    request: Request, attempt: Attempt, service: ServiceState, offset: Offset = 0
) -> Acknowledged:
    """Append a part to a journal (`journal.jsonl`); gzip, zstd or uncompressed."""
    return await _append(request, service, attempt, NAME, offset)


@router.put(f"{_ATTEMPT}/logs/{{name}}", responses=_REFUSED_PARTS)
async def log(
    request: Request,
    attempt: Attempt,
    service: ServiceState,
    name: Annotated[
        str,
        InPath(pattern=_LOGS, description="Name of the log, such as output.log or output.2.log"),
    ],
    offset: Offset = 0,
) -> Acknowledged:
    """Append a part to a log; gzip, zstd or uncompressed. Logs must be sent before the end of the journal."""
    return await _append(request, service, attempt, name, offset)


async def _append(
    request: Request, service: Service, attempt: SpooledAttempt, name: str, offset: int
) -> Acknowledged:
    _check_room(service, attempt.team)
    limits = service.settings.limits
    path = attempt.folder / name
    try:
        async with service.pieces.taken(attempt.team):
            size, new = await _stored(request, limits, path, offset)
    except Gap as error:
        raise HTTPException(409, {"message": str(error), "size": error.size}) from error
    except Full as error:
        raise _no_room(error) from error
    _count(service, attempt.team, "journal" if name == NAME else "log", new)
    service.intake.grown(attempt.team, path, new)
    return Acknowledged(size=size)


async def _stored(
    request: Request, limits: ServerLimits, path: Path, offset: int
) -> tuple[int, int]:
    """Stores a part; returns the number of received bytes, and of new ones."""
    for pause in (*_PAUSES_S, None):
        try:
            with appending(path, offset, most=limits.file_bytes) as piece:
                async for data in pieces(request, limits.text_bytes):
                    await run_in_threadpool(piece.write, data)
                await run_in_threadpool(piece.sync)
                return piece.size, piece.size - piece.begun
        except Busy:  # Nothing of the request was read yet.
            if pause is None:
                raise
            await asyncio.sleep(pause)
    raise AssertionError


@router.post("/diagnose-and-store", responses=_REFUSED_LOGS)
async def diagnose_and_store(
    request: Request, viewer: Writes, service: ServiceState, about: Annotated[About, Query()]
) -> KeptWhole:
    """Diagnose and store the log in the body, of a job that ran without EpochZero.

    Each request is a separate job. With `job`, a repeated request with the same log changes nothing.
    """
    limits = service.settings.limits
    async with _received(request, service, viewer.team, limits.text_bytes) as log:
        (job,) = await _diagnosed(service, viewer.team, [(about, log)])
        return await run_in_threadpool(_keep, service, viewer.team, job)


class BulkRecord(About):
    """One job of a bulk request: its log and its properties."""

    log: str


@router.post(
    "/diagnose-and-store/bulk",
    responses=_REFUSED_LOGS,
    openapi_extra={
        "requestBody": {
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            "required": True,
        }
    },
)
async def diagnose_and_store_many(
    request: Request, viewer: Writes, service: ServiceState
) -> list[StoredDiagnosis]:
    """Diagnose and store many small logs, one per line: `{"log": "...", "name": "..."}`; all or none.

    Each line is a separate job. With `job`, a repeated line with the same log changes nothing.
    """
    limits = service.settings.limits
    async with _received(request, service, viewer.team, limits.bulk_bytes) as lines:
        needed = await run_in_threadpool(_memory_for, lines)
        async with service.bulk.taken(viewer.team, needed):
            wanted = await run_in_threadpool(list, _jobs(lines))
            jobs = await _diagnosed(service, viewer.team, wanted)
            return await run_in_threadpool(_keep_many, service, viewer.team, jobs)


@asynccontextmanager
async def _received(
    request: Request, service: Service, team: str, most: int
) -> AsyncIterator[IO[bytes]]:
    """Stores the body of a request in a file, so that waiting requests use no memory."""
    _check_room(service, team)
    try:
        async with service.logs.taken(team):
            with service.spool.passing() as file:
                async for data in pieces(request, most):
                    file.write(data)
                yield file
    except Full as error:
        raise _no_room(error) from error


def _memory_for(lines: IO[bytes]) -> int:
    """Estimate of the memory that the jobs of a body require until they are stored."""
    size = count = 0
    lines.seek(0)
    while data := lines.read(_READ_BYTES):
        size += len(data)
        count += data.count(b"\n")
    return 2 * size + count * _JOB_MEMORY


async def _diagnosed(
    service: Service, team: str, jobs: Sequence[tuple[About, IO[bytes]]]
) -> Sequence[DiagnosedJob]:
    """Waits for diagnoses without occupying a thread, so that a team's slow logs do not delay other requests."""
    try:
        found = await asyncio.wrap_future(service.diagnosing.submit(team, jobs))
    except OSError as error:
        raise _no_room(full(error)) from error
    return await run_in_threadpool(
        lambda: [
            diagnosed_job(team, about, log) for (about, _), log in zip(jobs, found, strict=True)
        ]
    )


def _keep(service: Service, team: str, job: DiagnosedJob) -> KeptWhole:
    new = _store(service, team, [job])
    return KeptWhole(
        **_summary(job), new=job.ending.identity in new, diagnosis=dict(job.found.to_dict())
    )


def _keep_many(service: Service, team: str, jobs: Sequence[DiagnosedJob]) -> list[StoredDiagnosis]:
    new = _store(service, team, jobs)
    return [StoredDiagnosis(**_summary(job), new=job.ending.identity in new) for job in jobs]


def _jobs(lines: IO[bytes]) -> Iterator[tuple[About, IO[bytes]]]:
    """The jobs of a body, one per line.

    Raises:
        HTTPException: 413 for too many jobs, 422 for an invalid line, with its number.
    """
    number = 0
    lines.seek(0)
    for line in lines:
        if not line.strip():
            continue
        number += 1
        if number > _MOST_IN_BULK:
            raise HTTPException(413, f"a request contains at most {_MOST_IN_BULK} jobs")
        try:
            record = BulkRecord.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            message = f"line {number}: {place}: {first['msg']}; nothing of this request was stored"
            raise HTTPException(422, message) from error
        yield record, io.BytesIO(record.log.encode("utf-8", "replace"))


def _store(service: Service, team: str, jobs: Sequence[DiagnosedJob]) -> frozenset[str]:
    try:
        new = service.keeping.keep([job.ending for job in jobs])
        service.metrics.diagnosed.inc(len(jobs))
        _count(service, team, "diagnosed", sum(job.ending.size for job in jobs))
    finally:
        for job in jobs:
            job.close()
    return new


def _summary(job: DiagnosedJob) -> dict[str, str]:
    """A short description of a diagnosed job."""
    return {
        "job": job.job,
        "outcome": job.found.outcome,
        "category": job.found.category or "",
        "fingerprint": job.found.fingerprint or "",
        "title": job.found.title or "",
    }


def _no_room(error: Full) -> HTTPException:
    return HTTPException(507, str(error), {"Retry-After": "60"})


def _check_room(service: Service, team: str) -> None:
    """Rejects requests that exceed a team's quota or rate."""
    if wait := service.megabytes.wait(team):
        raise too_many(wait)
    if service.intake.used(team) > service.settings.limits.team_bytes:
        raise too_many(60.0)


def _count(service: Service, team: str, what: str, size: int) -> None:
    service.megabytes.spend(team, size / 1e6)
    service.metrics.received.labels(what).inc(size)
