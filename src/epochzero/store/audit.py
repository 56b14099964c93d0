"""Audit log of a server: who did what, and when."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from epochzero.store.database import Database
from epochzero.store.schema import AuditEntry

REFUSED = "sign-in rejected"
"""An unknown token belongs to no team, so the admins of all teams see the attempt."""

_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Act:
    """One entry of the audit log.

    Attributes:
        time: in seconds since the epoch.
        team, who: team and name of the token; empty if nobody was signed in.
        object: the object of the action.
        address: network address of the client; empty for the command line.
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
    """Writes an entry to the audit log."""
    with database.write() as session:
        note_in(session, team, who, action, what, address=address)


def note_in(
    session: Session, team: str, who: str, action: str, what: str = "", *, address: str = ""
) -> None:
    """Adds an entry to the audit log in the caller's session."""
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
    """The entries of a team, or of all teams, newest first.

    Rejected sign-ins belong to no team and are included for every team.
    """
    query = select(AuditEntry).order_by(AuditEntry.time.desc(), AuditEntry.id.desc()).limit(limit)
    if team is not None:
        refused = and_(AuditEntry.team == "", AuditEntry.action == REFUSED)
        query = query.where(or_(AuditEntry.team == team, refused))
    with database.read() as session:
        return [
            Act(row.time, row.team, row.who, row.action, row.object, row.address)
            for row in session.scalars(query)
        ]
