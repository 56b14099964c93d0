"""When a team is told of a failure: its rules."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select, tuple_

from epochzero.errors import InputError
from epochzero.run.notify import Webhook
from epochzero.store.database import Database
from epochzero.store.schema import Job, WebhookRule

__all__ = ["Rule", "add_rule", "due", "remove_rule", "rules"]

What = Literal["new_fingerprint", "gpu_hours"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        host: of its address, the rest of which is a secret.
        what: new_fingerprint: a failure that no job of the team ended with before; gpu_hours: one that cost
            more than ``hours``.
    """

    id: int
    host: str
    what: str
    hours: float | None


def add_rule(
    database: Database, team: str, url: str, what: What, hours: float | None = None
) -> Rule:
    """Makes a rule.

    Raises:
        InputError: the address is none, or the hours are missing.
        StoreError: the store cannot be written.
    """
    host = Webhook(url).host
    if (what == "gpu_hours") != (hours is not None):
        raise InputError("a rule of the kind gpu_hours, and no other, says how many hours")
    with database.write() as session:
        row = WebhookRule(team=team, url=url, what=what, hours=hours, created=time.time())
        session.add(row)
        session.flush()
        return Rule(row.id, host, what, hours)


def rules(database: Database, team: str) -> Sequence[Rule]:
    """The rules of a team."""
    query = select(WebhookRule).where(WebhookRule.team == team).order_by(WebhookRule.id)
    with database.read() as session:
        return [
            Rule(row.id, Webhook(row.url).host, row.what, row.hours)
            for row in session.scalars(query)
        ]


def remove_rule(database: Database, team: str, identity: int) -> None:
    """Takes a rule away.

    Raises:
        InputError: the team has no such rule.
        StoreError: the store cannot be written.
    """
    with database.write() as session:
        row = session.get(WebhookRule, identity)
        if row is None or row.team != team:
            raise InputError(f"there is no rule {identity}")
        session.delete(row)


def due(database: Database, team: str, identity: str) -> Sequence[str]:
    """The addresses that are told of a job's failure."""
    with database.read() as session:
        wanted = session.scalars(select(WebhookRule).where(WebhookRule.team == team)).all()
        job = session.get(Job, identity)
        if not wanted or job is None or job.state != "failed":
            return ()
        # Many jobs may come in at once: it is new in the one that ended first.
        before = select(Job.id).where(
            Job.team == team,
            Job.fingerprint == job.fingerprint,
            tuple_(Job.ended, Job.id) < tuple_(job.ended, job.id),
        )
        is_new = bool(job.fingerprint) and session.scalar(before.limit(1)) is None
        hours = job.gpu_hours
        return tuple(
            dict.fromkeys(
                rule.url
                for rule in wanted
                if (is_new if rule.what == "new_fingerprint" else hours > (rule.hours or 0.0))
            )
        )
