"""Differences between the environments of two jobs, most important first.

An environment is the snapshot of a rank (`epochzero.run.records.model.JobSnapshot`): of a job, or of the newest job
on a target or host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, cast, func, select

from epochzero.errors import InputError
from epochzero.store.daily_counts import Period, jobs_of
from epochzero.store.database import Database
from epochzero.store.overview import FAILED
from epochzero.store.queries import of_team
from epochzero.store.schema import AttemptRow, JobRow, Rank

_SINGLE = ("python", "cuda", "driver", "system", "commit")
_MOST_VALUE = 300


@dataclass(frozen=True, slots=True)
class TargetCount:
    """Number of jobs and failures of a target in a period; the name is empty for jobs without a target."""

    target: str
    jobs: int
    failed: int
    gpu_hours_lost: float
    last: float


@dataclass(frozen=True, slots=True)
class JobEnvironment:
    """The environment of a job.

    Attributes:
        name: display name.
        job: ID of the job whose snapshot it is.
    """

    name: str
    job: str
    snapshot: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One property that differs; an empty side lacks it.

    Attributes:
        kind: python, gpus, cuda, driver, package, variable, system or commit.
        is_major: whether it often causes failures: another major or minor version, or missing on one side.
    """

    kind: str
    name: str
    left: str
    right: str
    is_major: bool


def target_counts(database: Database, team: str, period: Period) -> list[TargetCount]:
    """The targets of the jobs of a period, those with the most jobs first."""
    with database.read() as session:
        jobs = jobs_of(session, team, period).c
        failed = jobs.state.in_(FAILED)
        count = cast(func.sum(jobs.jobs), BigInteger)
        query = (
            select(
                jobs.target,
                count,
                func.coalesce(cast(func.sum(jobs.jobs).filter(failed), BigInteger), 0),
                func.coalesce(func.sum(jobs.gpu_hours).filter(failed), 0.0),
                func.max(jobs.last),
            )
            .group_by(jobs.target)
            .order_by(count.desc(), jobs.target)
        )
        return [TargetCount(*row) for row in session.execute(query)]


def environment(database: Database, team: str, word: str) -> JobEnvironment:
    """The environment named by ``job:ID``, ``target:NAME`` or ``host:NAME``.

    Raises:
        InputError: no such environment, or another form.
    """
    kind, _, name = word.partition(":")
    columns = {"job": JobRow.id, "target": JobRow.target, "host": JobRow.host}
    if kind not in columns:
        raise InputError(f"{word!r} is not an environment; write job:ID, target:NAME or host:NAME")
    query = (
        select(JobRow.id, JobRow.name, Rank.snapshot)
        .join(AttemptRow, AttemptRow.job_id == JobRow.id)
        .join(Rank, Rank.attempt_id == AttemptRow.id)
        .where(of_team(team), columns[kind] == name)
        .order_by(JobRow.started.desc(), JobRow.id.desc(), AttemptRow.number.desc(), Rank.id)
        .limit(1)
    )
    with database.read() as session:
        row = session.execute(query).one_or_none()
    if row is None:
        raise InputError(f"no job is recorded for {word!r}")
    shown = {"job": row.name, "target": name or "no target", "host": name}[kind]
    return JobEnvironment(shown, row.id, row.snapshot)


def differing(left: JobEnvironment, right: JobEnvironment) -> Sequence[EnvironmentDifference]:
    """The differences between two environments, frequent causes of failures first."""
    old, new = left.snapshot, right.snapshot
    found = [
        *_singles(old, new),
        *_mapped("package", old.get("packages") or {}, new.get("packages") or {}),
        *_mapped("variable", old.get("variables") or {}, new.get("variables") or {}),
    ]
    return sorted(found, key=lambda difference: not difference.is_major)


def _singles(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[EnvironmentDifference]:
    gpus = [", ".join(map(str, side.get("gpus") or ())) for side in (old, new)]
    if gpus[0] != gpus[1]:
        yield EnvironmentDifference("gpus", "", gpus[0], gpus[1], True)
    for kind in _SINGLE:
        first, second = str(old.get(kind) or ""), str(new.get(kind) or "")
        if first != second:
            is_major = kind in ("python", "cuda", "driver") and _is_major(first, second)
            yield EnvironmentDifference(kind, "", first, second, is_major)


def _mapped(
    kind: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[EnvironmentDifference]:
    for name in sorted(old.keys() | new.keys()):
        first, second = str(old.get(name, "")), str(new.get(name, ""))
        if first != second:
            is_major = kind == "package" and _is_major(first, second)
            yield EnvironmentDifference(
                kind, name, first[:_MOST_VALUE], second[:_MOST_VALUE], is_major
            )


def _is_major(first: str, second: str) -> bool:
    """Whether one side is missing, or the first two version numbers differ."""
    return first.split(".")[:2] != second.split(".")[:2]
