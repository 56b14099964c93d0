"""Builds failure notifications from the store."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from sqlalchemy import select

from epochzero.run.records.model import End, Start
from epochzero.run.reports.end_summary import Notice, notice_of
from epochzero.store.database import Database
from epochzero.store.job_details import job_details
from epochzero.store.schema import KnownFailure


def failure_notice(database: Database, identity: str, number: int, url: str = "") -> Notice:
    """The notification of a failed attempt, with the title of its issue and whether that was resolved.

    Args:
        database: the store.
        identity: ID of the job.
        number: of the attempt.
        url: of the service; without it, the link is a path.

    Raises:
        InputError: no such job.
        StoreError: the database does not respond.
    """
    job = job_details(database, identity)
    attempt = next(a for a in job.attempts if a.number == number)
    diagnosis = next((rank.diagnosis for rank in attempt.ranks if rank.diagnosis), None)
    summary = job.summary
    started = Start(
        job=summary.id,
        attempt=attempt.number,
        name=summary.name,
        command=job.command,
        folder=job.folder,
        host=summary.host,
        user=summary.user,
        pid=0,
        time=attempt.started,
        gpus=summary.gpus,
    )
    end = attempt.ended if attempt.ended is not None else attempt.started
    ended = End(end, end - attempt.started, attempt.exit_code or 1)
    notice = notice_of(started, ended, diagnosis)
    title = summary.title or notice.title
    regressed = select(KnownFailure.team).where(KnownFailure.regressed_job == identity)
    with database.read() as session:
        if session.scalar(regressed.limit(1)) is not None:
            title = f"Back after it was resolved: {title}"
    path = f"/failures/{quote(summary.fingerprint)}" if summary.fingerprint else f"/jobs/{identity}"
    return replace(notice, title=title, link=url.rstrip("/") + path)
