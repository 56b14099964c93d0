"""Who did what in a service."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from epochzero.store.database import Database
from epochzero.store.schema import AuditEntry

REFUSED = "sign in refused"
"""An unknown token shows no team, so the admins of all teams see that somebody tries."""

_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did.

    Attributes:
        time: in seconds since the epoch.
        team, who: whose token, and its name; empty where nobody had signed in.
        object: to what it was done.
        address: network address of who asked; empty for the command line.
    """

    time: float
    team: str
    who: str
    action: str
    object: str
    address: str


def note(
    database: Database, team: str, who: str, action: str, what: str = "", *, address: str = ""
) -> None:
    """Keeps that somebody did something.

    Raises:
        StoreError: the store cannot be written.
    """
    with database.write() as session:
        note_in(session, team, who, action, what, address=address)


def note_in(
    session: Session, team: str, who: str, action: str, what: str = "", *, address: str = ""
) -> None:
    """The same, together with what else a session writes."""
    session.add(
        AuditEntry(
            time=time.time(),
            team=team,
            who=who[:_LONGEST],
            action=action,
            object=what[:_LONGEST],
            address=address,
        )
    )


def acts(database: Database, team: str | None = None, *, limit: int = 100) -> Sequence[Act]:
    """What was done in a team, or in all, the newest first.

    Sign-ins that were refused belong to no team and are shown to each.
    """
    query = select(AuditEntry).order_by(AuditEntry.time.desc(), AuditEntry.id.desc()).limit(limit)
    if team is not None:
        refused = and_(AuditEntry.team == "", AuditEntry.action == REFUSED)
        query = query.where(or_(AuditEntry.team == team, refused))
    with database.read() as session:
        return [
            Act(one.time, one.team, one.who, one.action, one.object, one.address)
            for one in session.scalars(query)
        ]
