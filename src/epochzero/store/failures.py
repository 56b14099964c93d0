"""All failures of a team with one fingerprint: affected jobs, frequency, notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.store.database import Database
from epochzero.store.failure_notes import Remark, known
from epochzero.store.queries import of_team
from epochzero.store.schema import (
    AttemptRow,
    FailureRow,
    JobRow,
    KnownFailure,
    Rank,
)

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class FailureDetails:
    """The failures of a team with one fingerprint, including those merged into it.

    Attributes:
        fingerprints: the fingerprint, then those merged into it.
        merged_into: the fingerprint that it is merged into; empty for none.
        jobs, gpu_hours: totals over all time.
        first, last: start of the first and of the last job.
        users, hosts: affected users and hosts; only those of the most recent jobs if there are many.
        diagnosis: of the last job.
        returned: number of jobs with this failure after it was resolved.
    """

    fingerprint: str
    fingerprints: tuple[str, ...]
    merged_into: str
    category: str
    title: str
    jobs: int
    gpu_hours: float
    first: float
    last: float
    users: tuple[tuple[str, int], ...]
    hosts: tuple[tuple[str, int], ...]
    diagnosis: dict[str, Any]
    resolution: str
    resolved_by: str
    resolved: float | None
    returned: int
    remarks: tuple[Remark, ...]


def failure_details(database: Database, team: str, fingerprint: str) -> FailureDetails:
    """All data about a fingerprint.

    Raises:
        InputError: no job of the team failed with this fingerprint.
        StoreError: the database does not respond.
    """
    said = known(database, team, fingerprint)
    every = (fingerprint, *said.also)
    remarks = (remark for one in every for remark in known(database, team, one).notes)
    with database.read() as session:
        ours = (of_team(team), JobRow.fingerprint.in_(every))
        jobs, hours, first, last = session.execute(
            select(
                func.count(),
                func.sum(JobRow.gpu_hours),
                func.min(JobRow.started),
                func.max(JobRow.started),
            ).where(*ours)
        ).one()
        newest = session.scalars(
            select(JobRow).where(*ours, JobRow.started == last).limit(1)
        ).one_or_none()
        if newest is None:
            raise InputError(f"no job failed with the fingerprint {fingerprint!r}")
        since = (*ours, JobRow.started > said.resolved) if said.resolved is not None else None
        return FailureDetails(
            fingerprint=fingerprint,
            fingerprints=every,
            merged_into=said.merged_into,
            category=newest.category,
            title=newest.title,
            jobs=jobs,
            gpu_hours=hours,
            first=first,
            last=last,
            users=_who(session, ours, JobRow.user),
            hosts=_who(session, ours, JobRow.host),
            diagnosis=_diagnosis(session, newest.id),
            resolution=said.resolution,
            resolved_by=said.resolved_by,
            resolved=said.resolved,
            returned=session.scalar(select(func.count()).where(*since)) or 0 if since else 0,
            remarks=tuple(sorted(remarks, key=lambda one: one.time)),
        )


def resolutions(database: Database, team: str) -> dict[str, float]:
    """The times at which failures were resolved, by fingerprint; open failures are omitted."""
    query = select(KnownFailure.fingerprint, KnownFailure.resolved).where(
        KnownFailure.team == team, KnownFailure.resolved.is_not(None)
    )
    with database.read() as session:
        return {row.fingerprint: row.resolved for row in session.execute(query)}


def _who(session: Session, ours: Any, column: Any) -> tuple[tuple[str, int], ...]:
    """The most frequent values among the last thousand jobs, with their counts."""
    last = select(column.label("who")).where(*ours).order_by(JobRow.started.desc()).limit(1000)
    who = last.subquery().c.who
    query = select(who, func.count()).group_by(who).order_by(func.count().desc(), who)
    return tuple((name, count) for name, count in session.execute(query.limit(_MOST_SHOWN)))


def _diagnosis(session: Session, job: str) -> dict[str, Any]:
    query = (
        select(FailureRow.diagnosis)
        .join(Rank, Rank.id == FailureRow.rank_id)
        .join(AttemptRow, AttemptRow.id == Rank.attempt_id)
        .where(AttemptRow.job_id == job)
        .order_by(AttemptRow.number.desc(), Rank.ended, FailureRow.id)
    )
    return session.scalars(query.limit(1)).first() or {}
