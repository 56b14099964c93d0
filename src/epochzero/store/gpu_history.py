"""GPU memory usage of past jobs, for the check of a job before it runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import select

from epochzero.check import PastPeak
from epochzero.check.launch import read_job
from epochzero.errors import InputError
from epochzero.store import schema
from epochzero.store.database import Database

MOST = 100
"""Maximum number of failures that are read, newest first."""


def past_peaks(database: Database) -> list[PastPeak]:
    """The runs that exceeded their GPU's memory and whose torch message contains the usage."""
    jobs, attempts, ranks, failures = (
        schema.JobRow,
        schema.AttemptRow,
        schema.Rank,
        schema.FailureRow,
    )
    wanted = (
        select(jobs.command, jobs.folder, failures.time, ranks.snapshot, failures.diagnosis)
        .join(attempts, attempts.job_id == jobs.id)
        .join(ranks, ranks.attempt_id == attempts.id)
        .join(failures, failures.rank_id == ranks.id)
        .where(failures.category == "gpu_out_of_memory")
        .order_by(failures.time.desc())
        .limit(MOST)
    )
    with database.read() as session:
        rows = session.execute(wanted).all()
    found = (_peak(*row) for row in rows)
    return list(dict.fromkeys(peak for peak in found if peak is not None))


def _peak(
    command: list[str],
    folder: str,
    time: float,
    snapshot: dict[str, Any],
    diagnosis: dict[str, Any],
) -> PastPeak | None:
    """One run; None if the program has changed since, or the GPU or message is incomplete."""
    models = set(snapshot.get("gpus") or ())
    message = (diagnosis.get("exception") or {}).get("message", "")
    if len(models) != 1 or not message:
        return None
    try:
        jobs = read_job(tuple(command), Path(folder)).jobs
        changed = max(job.script.stat().st_mtime if job.script else 0.0 for job in jobs)
    except (InputError, OSError, ValueError):
        return None
    if len(jobs) > 1 or changed > time:
        return None
    return PastPeak.of_failure(jobs[0], models.pop(), message)
