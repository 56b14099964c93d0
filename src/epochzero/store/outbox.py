"""Pending webhook notifications, written in the same transaction as the failures, so that neither a restart nor a kill loses any.

The transactional outbox of Richardson, "Microservices Patterns", Manning 2018, Chapter 3.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from epochzero.store.audit import note_in
from epochzero.store.bulk_insert import insert_each_once
from epochzero.store.database import Database
from epochzero.store.schema import (
    AttemptRow,
    Delivery,
    FailureRow,
    JobRow,
    KnownFailure,
    Rank,
    WebhookRule,
)  # fmt: skip

_MOST_WAITING = 200
"""Per team."""
_NO_DAY = -1
"""`epochzero.store.daily_counts` locks a team and -2, or a number that is never negative."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A pending notification of a failed attempt.

    Attributes:
        identity: lets its receiver detect duplicates.
        url: address of the webhook.
        tried: number of delivery attempts.
        due: time of the next attempt, in seconds since the epoch.
    """

    job: str
    attempt: int
    rule: int
    team: str
    identity: str
    url: str
    tried: int
    due: float

    @property
    def row(self) -> Sequence[ColumnElement[bool]]:
        """Condition that selects its row."""
        of_job = Delivery.job_id == self.job, Delivery.attempt == self.attempt
        return *of_job, Delivery.rule_id == self.rule


def owe(session: Session, written: Mapping[str, str]) -> None:
    """Adds notifications for failed attempts, one per rule and attempt.

    Args:
        session: the session that has written the attempts.
        written: the teams of ranks, by the IDs of their journals.
    """
    teams = session.scalars(
        select(WebhookRule.team).where(WebhookRule.team.in_(set(written.values()))).distinct()
    ).all()
    for team in sorted(teams):
        _wait_for_others(session, team)
        ranks = [identity for identity, whose in written.items() if whose == team]
        _owe_team(session, team, ranks)


def _wait_for_others(session: Session, team: str) -> None:
    """Serializes writers: two transactions that do not see each other's jobs would both call the same failure new."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(func.hashtext(team), _NO_DAY)))


def _owe_team(session: Session, team: str, ranks: Collection[str]) -> None:
    found = session.execute(_failed(team, ranks)).all()
    by_address = {(job, number, url): rule for job, number, rule, url in reversed(found)}
    waiting = session.scalar(
        select(func.count()).where(Delivery.team == team, Delivery.due.is_not(None))
    )
    room = _MOST_WAITING - (waiting or 0)
    now = time.time()
    rows = [
        {
            "job_id": job,
            "attempt": number,
            "rule_id": rule,
            "team": team,
            "identity": secrets.token_hex(16),
            "tried": 0,
            "due": now if place < room else None,
        }
        for place, ((job, number, _), rule) in enumerate(by_address.items())
    ]
    insert_each_once(session, Delivery, rows)
    if len(rows) > room:
        text = f"{len(rows) - max(room, 0)} failures dropped: too many notifications are waiting"
        note_in(session, team, "service", "webhook not notified", text)


def _failed(team: str, ranks: Collection[str]) -> Select[str, int, int, str]:
    """The failed last attempts of the given ranks, each with the rules that apply."""
    other, later, of_same = aliased(JobRow), aliased(AttemptRow), aliased(Rank)
    # If several jobs with a new failure arrive at once, it is new in the job that ended first.
    together = select(AttemptRow.job_id).join(Rank).where(Rank.journal.in_(ranks))
    known = exists().where(
        other.team == team,
        other.fingerprint == JobRow.fingerprint,
        other.id != JobRow.id,
        or_(
            other.id.not_in(together),
            tuple_(other.ended, other.id) < tuple_(JobRow.ended, JobRow.id),
        ),
    )
    reopened = exists().where(KnownFailure.team == team, KnownFailure.regressed_job == JobRow.id)
    is_new = and_(
        WebhookRule.what == "new_fingerprint", JobRow.fingerprint != "", or_(~known, reopened)
    )
    is_dear = and_(WebhookRule.what == "gpu_hours", JobRow.gpu_hours > WebhookRule.hours)
    diagnosed = exists().where(
        FailureRow.rank_id == of_same.id, of_same.attempt_id == AttemptRow.id
    )
    superseded = exists().where(later.job_id == JobRow.id, later.number > AttemptRow.number)
    return (
        select(JobRow.id, AttemptRow.number, WebhookRule.id, WebhookRule.url)
        .join(AttemptRow, AttemptRow.job_id == JobRow.id)
        .join(Rank, Rank.attempt_id == AttemptRow.id)
        .join(WebhookRule, WebhookRule.team == JobRow.team)
        .where(Rank.journal.in_(ranks), JobRow.team == team, JobRow.state == "failed")
        .where(diagnosed, ~superseded, or_(is_new, is_dear))
        .order_by(JobRow.id, WebhookRule.id)
    )


def due(database: Database, now: float, *, without: Collection[str] = ()) -> Sequence[Owed]:
    """The notifications that are due, the first of each team.

    Args:
        now: in seconds since the epoch.
        without: teams to skip.
    """
    place = func.row_number().over(
        partition_by=Delivery.team, order_by=(Delivery.due, Delivery.job_id)
    )
    first = (
        select(Delivery, place.label("place"))
        .where(Delivery.due <= now, Delivery.team.not_in(without))
        .subquery()
    )
    row = first.c
    columns = (row.job_id, row.attempt, row.rule_id, row.team, row.identity)
    query = (
        select(*columns, WebhookRule.url, row.tried, row.due)
        .join(WebhookRule, WebhookRule.id == row.rule_id)
        .where(row.place == 1)
        .order_by(row.due)
    )
    with database.read() as session:
        return [Owed(*found) for found in session.execute(query)]


def begin(database: Database, owed: Owed, until: float) -> bool:
    """Counts one delivery attempt; returns whether no other process has started it.

    Args:
        owed: from `due`.
        until: time of the next attempt if this process is killed.
    """
    begun = (
        update(Delivery)
        .where(*owed.row, Delivery.due == owed.due)
        .values(tried=Delivery.tried + 1, due=until)
        .returning(Delivery.job_id)
    )
    with database.write() as session:
        return session.scalar(begun) is not None


def settle(
    database: Database, owed: Owed, action: str, what: str, *, again: float | None = None
) -> None:
    """Stores the result of a delivery attempt, also in the team's audit log.

    Args:
        owed: the notification.
        action, what: for the audit log.
        again: time of the next attempt; None for never.
    """
    with database.write() as session:
        session.execute(update(Delivery).where(*owed.row).values(due=again))
        note_in(session, owed.team, "service", action, what)
