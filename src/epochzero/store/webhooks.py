"""Rules that decide when a team is notified of a failure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select

from epochzero.errors import InputError
from epochzero.run.reports.notifications import Webhook
from epochzero.store.database import Database
from epochzero.store.schema import WebhookRule

What = Literal["new_fingerprint", "gpu_hours"]


@dataclass(frozen=True, slots=True)
class WebhookFilter:
    """A rule.

    Attributes:
        host: of its URL; the rest of the URL is secret.
        what: new_fingerprint: a failure that did not occur in the team before, or again after it was resolved; gpu_hours: a failure that cost
            more than ``hours``.
    """

    id: int
    host: str
    what: str
    hours: float | None


def add_rule(
    database: Database, team: str, url: str, what: What, hours: float | None = None
) -> WebhookFilter:
    """Creates a rule.

    Raises:
        InputError: the address is not valid, or the hours are missing.
    """
    host = Webhook(url).host
    if (what == "gpu_hours") != (hours is not None):
        raise InputError(
            "a rule of kind gpu_hours requires a number of hours; other kinds do not accept it"
        )
    with database.write() as session:
        row = WebhookRule(team=team, url=url, what=what, hours=hours, created=time.time())
        session.add(row)
        session.flush()
        return WebhookFilter(row.id, host, what, hours)


def rules(database: Database, team: str) -> Sequence[WebhookFilter]:
    """The rules of a team."""
    query = select(WebhookRule).where(WebhookRule.team == team).order_by(WebhookRule.id)
    with database.read() as session:
        return [
            WebhookFilter(row.id, Webhook(row.url).host, row.what, row.hours)
            for row in session.scalars(query)
        ]


def remove_rule(database: Database, team: str, identity: int) -> None:
    """Deletes a rule and its pending notifications.

    Raises:
        InputError: the team has no such rule.
    """
    with database.write() as session:
        row = session.get(WebhookRule, identity)
        if row is None or row.team != team:
            raise InputError(f"no rule {identity}")
        session.delete(row)
