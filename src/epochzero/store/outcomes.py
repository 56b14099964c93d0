"""Derives jobs and attempts from their ranks: state, times, cost, and the relevant failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from epochzero.store.bulk_insert import insert_each_once
from epochzero.store.issues import Failed, partition_of, record
from epochzero.store.schema import (
    AttemptRow,
    EventRow,
    FailureRow,
    FailureText,
    FindingRow,
    JobRow,
    Rank,
)  # fmt: skip
from epochzero.store.search import digest_of, words_of
from epochzero.store.states import FINAL

IMAGES = ("CONTAINER_IMAGE", "SLURM_CONTAINER", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
"""Variables that name the container image of a job."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """The failure of an attempt.

    Attributes:
        identity: its fingerprint; empty if it identifies nothing.
        checked: 1 if the unchanged code was checked.
        commit, image: of the rank that failed.
        diagnosis: in its JSON form; empty for a training fault.
    """

    category: str
    identity: str
    title: str
    checked: int = 0
    commit: str = ""
    image: str = ""
    diagnosis: Mapping[str, Any] = field(default_factory=dict)


_NO_FAILURE = _Failure("", "", "")


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
    failed: list[Failed] = []
    for job, attempt_id in zip(jobs, last, strict=True):
        _sum_up_job(job, attempts[job.id])
        failure = failures.get(attempt_id, _NO_FAILURE)
        job.category, job.fingerprint, job.title = failure.category, failure.identity, failure.title
        job.checked = failure.checked
        job.caught = int(bool(job.category) and (attempt_id, job.category) in caught)
        job.image, job.partition = failure.image, partition_of(job)
        if failure.diagnosis:
            failed.append(Failed(job, failure.commit, failure.diagnosis))
    _index(session, failed)
    session.flush()
    record(session, [f for f in failed if f.job.fingerprint])


def _index(session: Session, failed: Sequence[Failed]) -> None:
    """Makes failures searchable."""
    keys = []
    rows = {}
    for failure in failed:
        words = words_of(failure.diagnosis)
        digest = digest_of(failure.job.fingerprint, words)
        keys.append((failure.job.team, digest))
        rows[keys[-1]] = {
            "team": failure.job.team, "fingerprint": failure.job.fingerprint, "digest": digest,
            "words": words,
        }  # fmt: skip
    if not rows:
        return
    insert_each_once(session, FailureText, [rows[key] for key in sorted(rows)])
    found = select(FailureText.team, FailureText.digest, FailureText.id).where(
        tuple_(FailureText.team, FailureText.digest).in_(rows)
    )
    ids = {(team, digest): identity for team, digest, identity in session.execute(found)}
    for failure, key in zip(failed, keys, strict=True):
        failure.job.text_id = ids[key]


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


def _failures(session: Session, attempts: Collection[int]) -> dict[int, _Failure]:
    """The failure that occurred first on any rank of an attempt.

    For an attempt terminated because of a training fault, it is that fault, without a fingerprint.
    A weak fingerprint is not used, because jobs are grouped by fingerprint.
    """
    # They import what diagnoses and watches, which commands that only read the store do not need.
    from epochzero.diagnose.fingerprint import is_weak
    from epochzero.run.watch.live import ENDED_EVENT

    found: dict[int, _Failure] = {}
    for attempt, commit, snapshot, row in session.execute(
        select(Rank.attempt_id, Rank.commit, Rank.snapshot, FailureRow)
        .join(FailureRow, FailureRow.rank_id == Rank.id)
        .where(Rank.attempt_id.in_(attempts))
        .order_by(Rank.ended, FailureRow.id)
    ):
        identity = "" if is_weak(row.fingerprint) else row.fingerprint
        if attempt not in found:
            found[attempt] = _Failure(
                row.category, identity, row.title, row.checked, commit, image_of(snapshot),
                row.diagnosis,
            )  # fmt: skip
    for attempt, details, text in session.execute(
        select(Rank.attempt_id, EventRow.details, EventRow.text)
        .join(EventRow, EventRow.rank_id == Rank.id)
        .where(Rank.attempt_id.in_(attempts), EventRow.what == ENDED_EVENT)
        .order_by(EventRow.time)
    ):
        found.setdefault(attempt, _Failure(str(details.get("word", "")), "", text))
    return found


def image_of(snapshot: Mapping[str, Any]) -> str:
    """The container image of a rank, as its runtime or its pod names it."""
    variables = snapshot.get("variables") or {}
    return next((str(variables[name])[:300] for name in IMAGES if variables.get(name)), "")


def _caught(session: Session, attempts: Collection[int]) -> frozenset[tuple[int, str]]:
    """The attempts with each category for which a check of the unchanged job reports a failure."""
    wanted = (
        select(Rank.attempt_id, FindingRow.category)
        .join(FindingRow, FindingRow.rank_id == Rank.id)
        .where(Rank.attempt_id.in_(attempts), FindingRow.severity == "error")
        .distinct()
    )
    return frozenset((attempt, category) for attempt, category in session.execute(wanted))
