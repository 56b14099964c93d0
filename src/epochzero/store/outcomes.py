"""Derives jobs and attempts from their ranks: state, times, cost, and the relevant failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from epochzero.diagnose.fingerprint import is_weak
from epochzero.run.watch.live import ENDED_EVENT
from epochzero.store.schema import AttemptRow, EventRow, FailureRow, FindingRow, JobRow, Rank
from epochzero.store.states import FINAL

_NO_FAILURE = ("", "", "")


def sum_up(session: Session, changed: Collection[int]) -> None:
    """Updates the rows of attempts and their jobs from their ranks.

    Args:
        session: a writing session.
        changed: IDs of the attempts whose ranks have changed.
    """
    if not changed:
        return
    session.flush()
    jobs = _locked_jobs(session, changed)
    ranks = _ranks(session, changed)
    attempts: dict[str, list[AttemptRow]] = defaultdict(list)
    for attempt in session.scalars(
        select(AttemptRow)
        .where(AttemptRow.job_id.in_([job.id for job in jobs]))
        .order_by(AttemptRow.number)
        .execution_options(populate_existing=True)
    ):
        attempts[attempt.job_id].append(attempt)
    for job in jobs:
        for attempt in attempts[job.id]:
            if attempt.id in ranks:
                _sum_up_attempt(attempt, ranks[attempt.id], job.gpus)
    last = [attempts[job.id][-1].id for job in jobs]
    failures, caught = _failures(session, last), _caught(session, last)
    for job, attempt_id in zip(jobs, last, strict=True):
        _sum_up_job(job, attempts[job.id])
        job.category, job.fingerprint, job.title = failures.get(attempt_id, _NO_FAILURE)
        job.caught = int(bool(job.category) and (attempt_id, job.category) in caught)


def _locked_jobs(session: Session, changed: Collection[int]) -> Sequence[JobRow]:
    """Locks the jobs of attempts, so that their earlier changes are visible."""
    of_attempts = select(AttemptRow.job_id).where(AttemptRow.id.in_(changed))
    return session.scalars(
        select(JobRow)
        .where(JobRow.id.in_(of_attempts))
        .order_by(JobRow.id)
        # The weaker lock lets others start more attempts in the meantime.
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).all()


def _ranks(session: Session, attempts: Collection[int]) -> dict[int, list[Any]]:
    """The relevant values of the ranks of each attempt."""
    found: dict[int, list[Any]] = defaultdict(list)
    columns = (Rank.state, Rank.started, Rank.ended, Rank.heartbeat, Rank.exit_code)
    wanted = select(Rank.attempt_id, *columns).where(Rank.attempt_id.in_(attempts))
    for row in session.execute(wanted.order_by(Rank.id)):
        found[row.attempt_id].append(row)
    return found


def _sum_up_attempt(attempt: AttemptRow, ranks: Sequence[Any], gpus: int) -> None:
    attempt.state = _state_of_all([rank.state for rank in ranks])
    attempt.started = min(rank.started for rank in ranks)
    over = attempt.state in FINAL
    attempt.ended = max(rank.ended or rank.heartbeat for rank in ranks) if over else None
    codes = [rank.exit_code for rank in ranks if rank.exit_code is not None]
    attempt.exit_code = next((code for code in codes if code), codes[0] if codes else None)
    if attempt.ended is not None:
        attempt.gpu_hours = gpus * max(0.0, attempt.ended - attempt.started) / 3600


def _state_of_all(states: list[str]) -> str:
    """A failed rank determines the state, otherwise a running rank.

    A rank counts as exited if another rank has failed, even without further records of it.
    """
    order = ("failed", "cancelled", "lost", "running", "ended", "succeeded")
    first = min(states, key=order.index)
    return "failed" if first == "ended" else first


def _sum_up_job(job: JobRow, attempts: Sequence[AttemptRow]) -> None:
    last = attempts[-1]
    job.attempts, job.state, job.ended = len(attempts), last.state, last.ended
    job.started = min(attempt.started for attempt in attempts)
    job.gpu_hours = sum(attempt.gpu_hours for attempt in attempts)
    job.wasted_gpu_hours = sum(
        attempt.gpu_hours for attempt in attempts[1:] if attempt.state == "failed"
    )


def _failures(session: Session, attempts: Collection[int]) -> dict[int, tuple[str, str, str]]:
    """Category, fingerprint and title of the failure that occurred first on any rank of an attempt.

    For an attempt terminated because of a training fault, it is that fault, without a fingerprint.
    A weak fingerprint is not used, because jobs are grouped by fingerprint.
    """
    found: dict[int, tuple[str, str, str]] = {}
    for attempt, category, fingerprint, title in session.execute(
        select(Rank.attempt_id, FailureRow.category, FailureRow.fingerprint, FailureRow.title)
        .join(FailureRow, FailureRow.rank_id == Rank.id)
        .where(Rank.attempt_id.in_(attempts))
        .order_by(Rank.ended, FailureRow.id)
    ):
        identity = "" if is_weak(fingerprint) else fingerprint
        found.setdefault(attempt, (category, identity, title))
    for attempt, details, text in session.execute(
        select(Rank.attempt_id, EventRow.details, EventRow.text)
        .join(EventRow, EventRow.rank_id == Rank.id)
        .where(Rank.attempt_id.in_(attempts), EventRow.what == ENDED_EVENT)
        .order_by(EventRow.time)
    ):
        found.setdefault(attempt, (str(details.get("word", "")), "", text))
    return found


def _caught(session: Session, attempts: Collection[int]) -> frozenset[tuple[int, str]]:
    """The attempts with each category for which a check of the unchanged job reports a failure."""
    wanted = (
        select(Rank.attempt_id, FindingRow.category)
        .join(FindingRow, FindingRow.rank_id == Rank.id)
        .where(Rank.attempt_id.in_(attempts), FindingRow.severity == "error")
        .distinct()
    )
    return frozenset((attempt, category) for attempt, category in session.execute(wanted))
