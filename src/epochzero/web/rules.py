"""Looks for the failures that a team has rules for, each attempt of a job once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epochzero.run.model import Ended, Started
from epochzero.run.notice import Notice, notice_of
from epochzero.store.database import Database
from epochzero.store.queries import AttemptDetails, JobDetails, job_details
from epochzero.store.recorder import identity_of, job_of
from epochzero.store.webhooks import due
from epochzero.web.deliveries import Deliveries
from epochzero.web.received import origin_of

__all__ = ["Rules"]

_MOST_REMEMBERED = 100_000


class Rules:
    """Looks at jobs that failed, and has those told of them who have a rule for it.

    Args:
        database: the store.
        deliveries: that tell them.
    """

    def __init__(self, database: Database, deliveries: Deliveries) -> None:
        self._database = database
        self._deliveries = deliveries
        self._told: dict[tuple[str, int], None] = {}

    def look(self, journal: Path, team: str) -> None:
        """Looks at the job of a journal that was taken in."""
        if identity := job_of(self._database, identity_of(journal, origin_of(team))):
            self.look_at(identity, team)

    def look_at(self, identity: str, team: str) -> None:
        """Looks at a job: who has a rule for its failure is told."""
        addresses = due(self._database, team, identity)
        if not addresses:
            return
        job = job_details(self._database, identity)
        attempt = job.attempts[-1]
        diagnosis = next((rank.diagnosis for rank in attempt.ranks if rank.diagnosis), None)
        key = (identity, attempt.number)
        if diagnosis is None or key in self._told:
            return
        self._told[key] = None
        if len(self._told) > _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        for address in addresses:
            self._deliveries.add(team, address, _notice(job, attempt, diagnosis))


def _notice(job: JobDetails, attempt: AttemptDetails, diagnosis: Mapping[str, Any]) -> Notice:
    summary = job.summary
    started = Started(
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
    ended = Ended(end, end - attempt.started, attempt.exit_code or 1)
    return notice_of(started, ended, diagnosis)
