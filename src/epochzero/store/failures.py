"""All failures of a team with one fingerprint: affected jobs, frequency, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.store.daily_counts import END, Period, failures_of
from epochzero.store.database import Database
from epochzero.store.failure_notes import Known, Remark, known
from epochzero.store.issue_changes import IssueChange, changes_with
from epochzero.store.queries import of_team
from epochzero.store.schema import AttemptRow, FailureRow, JobRow, KnownFailure, Rank

_MOST_SHOWN = 20
_ALL_TIME = Period(-1e18, 1e18)
"""Includes the jobs of clocks that are wrong by centuries."""


@dataclass(frozen=True, slots=True)
class FailureDetails:
    """The failures of a team with one fingerprint, including those merged into it.

    Attributes:
        fingerprints: the fingerprint, then those merged into it.
        issue: what the team has recorded about it.
        jobs, gpu_hours: totals over all time.
        first: start of the first job ever, which may be deleted.
        last: start of the last job.
        users, hosts: affected users and hosts; only those of the most recent jobs if there are many.
        diagnosis: of the last job.
        returned: number of jobs with this failure since one reopened it.
        changes: what changed with the first failures.
    """

    fingerprint: str
    fingerprints: tuple[str, ...]
    issue: Known
    category: str
    title: str
    jobs: int
    gpu_hours: float
    first: float
    last: float
    users: tuple[tuple[str, int], ...]
    hosts: tuple[tuple[str, int], ...]
    diagnosis: dict[str, Any]
    returned: int
    changes: tuple[IssueChange, ...]
    remarks: tuple[Remark, ...]


def failure_details(database: Database, team: str, fingerprint: str) -> FailureDetails:
    """All data about a fingerprint.

    Raises:
        InputError: no job of the team failed with this fingerprint.
    """
    issue = known(database, team, fingerprint)
    every = (fingerprint, *issue.also)
    remarks = (remark for text in every for remark in known(database, team, text).notes)
    with database.read() as session:
        ours = (of_team(team), JobRow.fingerprint.in_(every))
        jobs, hours, first, last = _totals(session, team, every, _ALL_TIME)
        newest = session.scalars(
            select(JobRow).where(*ours).order_by(JobRow.started.desc()).limit(1)
        ).one_or_none()
        if newest is None:
            raise InputError(f"no job failed with the fingerprint {fingerprint!r}")
        back = issue.regressed
        if issue.first_seen is not None:
            first = min(first, issue.first_seen)
        return FailureDetails(
            fingerprint=fingerprint,
            fingerprints=every,
            issue=issue,
            category=newest.category,
            title=newest.title,
            jobs=jobs,
            gpu_hours=hours,
            first=first,
            last=last,
            users=_who(session, ours, JobRow.user),
            hosts=_who(session, ours, JobRow.host),
            diagnosis=_diagnosis(session, newest.id),
            returned=0 if back is None else _totals(session, team, every, Period(back, END))[0],
            changes=changes_with(session, team, every, newest.name, first),
            remarks=tuple(sorted(remarks, key=lambda remark: remark.time)),
        )


def _totals(
    session: Session, team: str, fingerprints: Sequence[str], period: Period
) -> tuple[int, float, float, float]:
    """Number, GPU hours, first and last start of the jobs of a period, from sums where they exist."""
    seen = failures_of(session, team, period).c
    sums = func.sum(seen.jobs), func.sum(seen.gpu_hours), func.min(seen.first), func.max(seen.last)
    row = session.execute(select(*sums).where(seen.fingerprint.in_(fingerprints))).one()
    return int(row[0] or 0), row[1] or 0.0, row[2] or 0.0, row[3] or 0.0


def newest_fixes(database: Database, team: str, fingerprints: Sequence[str]) -> dict[str, str]:
    """The first fix that the diagnosis of the newest job with each fingerprint suggests, if any."""
    with database.read() as session:
        rows = session.execute(_NEWEST_DIAGNOSES, {"team": team, "fingerprints": fingerprints})
        return {name: str(found["fixes"][0]) for name, found in rows if found.get("fixes")}


def _newest_diagnoses() -> Select[str, dict[str, Any]]:
    """The diagnosis of the newest job with each fingerprint; built once, since the overview needs it."""
    newest = (
        select(JobRow.id)
        .where(JobRow.team == bindparam("team"), JobRow.fingerprint == KnownFailure.fingerprint)
        .order_by(JobRow.started.desc())
        .limit(1)
        .correlate(KnownFailure)
        .scalar_subquery()
    )
    failure = _of_job(select(FailureRow.id), newest).correlate(KnownFailure).scalar_subquery()
    return (
        select(KnownFailure.fingerprint, FailureRow.diagnosis)
        .where(KnownFailure.team == bindparam("team"))
        .where(KnownFailure.fingerprint.in_(bindparam("fingerprints", expanding=True)))
        .join(FailureRow, FailureRow.id == failure)
    )


def _of_job(query: Select[Any], job: Any) -> Select[Any]:
    """Limits a query of failures to the one that ended the last attempt of a job."""
    return (
        query.join(Rank, Rank.id == FailureRow.rank_id)
        .join(AttemptRow, AttemptRow.id == Rank.attempt_id)
        .where(AttemptRow.job_id == job)
        .order_by(AttemptRow.number.desc(), Rank.ended, FailureRow.id)
        .limit(1)
    )


_NEWEST_DIAGNOSES = _newest_diagnoses()


def _who(session: Session, ours: Any, column: Any) -> tuple[tuple[str, int], ...]:
    """The most frequent values among the last thousand jobs, with their counts."""
    last = (
        select(column.label("who"))
        .where(*ours, column != "")
        .order_by(JobRow.started.desc())
        .limit(1000)
    )
    who = last.subquery().c.who
    query = select(who, func.count()).group_by(who).order_by(func.count().desc(), who)
    return tuple((name, count) for name, count in session.execute(query.limit(_MOST_SHOWN)))


def _diagnosis(session: Session, job: str) -> dict[str, Any]:
    query = _of_job(select(FailureRow.diagnosis), job)
    return session.scalars(query).first() or {}
