"""Notes, resolutions and merges of a team's failures, by fingerprint."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.store.bulk_insert import insert_once
from epochzero.store.database import Database
from epochzero.store.issues import IssueState, state_of
from epochzero.store.schema import JobRow, KnownFailure, KnownFailureNote


@dataclass(frozen=True, slots=True)
class Remark:
    """A note of a person."""

    time: float
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a team has recorded about a fingerprint.

    Attributes:
        state, owner: of the issue; see `epochzero.store.issues`.
        first_seen, first_job, first_commit: of the first job ever.
        resolution, resolved_by, resolved: how, by whom and when it was resolved; empty and None if it never was.
        resolved_commit: commit or version with the fix.
        regressed: when it was reopened by a job.
        ignored_until: until when it is hidden.
        merged_into: the fingerprint that it is merged into; empty for none.
        also: fingerprints that are merged into it.
        notes: in chronological order.
    """

    fingerprint: str
    state: IssueState
    owner: str
    first_seen: float | None
    first_job: str
    first_commit: str
    resolution: str
    resolved_by: str
    resolved: float | None
    resolved_commit: str
    regressed: float | None
    ignored_until: float | None
    merged_into: str
    also: tuple[str, ...]
    notes: tuple[Remark, ...]


_OF_ROW = (
    "owner", "first_seen", "first_job", "first_commit", "resolution", "resolved_by", "resolved",
    "resolved_commit", "regressed", "ignored_until", "merged_into",
)  # fmt: skip


def known(database: Database, team: str, fingerprint: str) -> Known:
    """The records of a team about a fingerprint.

    Raises:
        InputError: the team has no such issue.
    """
    notes = (
        select(KnownFailureNote)
        .where(KnownFailureNote.team == team, KnownFailureNote.fingerprint == fingerprint)
        .order_by(KnownFailureNote.time, KnownFailureNote.id)
    )
    with database.read() as session:
        row = session.get(KnownFailure, (team, fingerprint))
        if row is None:
            raise InputError(f"no failure has the fingerprint {fingerprint!r}")
        return Known(
            fingerprint,
            state_of(row, time.time()),
            **{name: getattr(row, name) for name in _OF_ROW},
            also=tuple(session.scalars(_merged_into(team, fingerprint))),
            notes=tuple(
                Remark(note.time, note.author, note.text) for note in session.scalars(notes)
            ),
        )


def merged_with(database: Database, team: str, fingerprint: str) -> tuple[str, ...]:
    """A fingerprint, followed by those that are merged into it."""
    with database.read() as session:
        return fingerprint, *session.scalars(_merged_into(team, fingerprint))


def add_note(database: Database, team: str, fingerprint: str, author: str, text: str) -> None:
    """Adds a note to a fingerprint.

    Raises:
        InputError: the team has no failure with this fingerprint.
    """
    with database.write() as session:
        _check(session, team, fingerprint)
        session.add(
            KnownFailureNote(
                team=team, fingerprint=fingerprint, time=time.time(), author=author, text=text
            )
        )


def resolve(
    database: Database, team: str, fingerprint: str, who: str, resolution: str, commit: str = ""
) -> None:
    """Marks a fingerprint as resolved; an empty text reopens it.

    Args:
        team: of the failure.
        fingerprint: of the failure.
        who: resolved it.
        resolution: how.
        commit: commit or version with the fix; jobs of code that ran before do not reopen it.

    Raises:
        InputError: the team has no failure with this fingerprint.
    """
    with database.write() as session:
        row = _row(session, team, fingerprint)
        row.resolution = resolution
        row.resolved_by = who if resolution else ""
        row.resolved = time.time() if resolution else None
        row.resolved_commit = commit if resolution else ""
        row.regressed, row.regressed_job = None, ""


def merge(database: Database, team: str, fingerprint: str, into: str) -> None:
    """Merges a fingerprint into another; an empty target splits it.

    Raises:
        InputError: the team has no failure with one of them, or they are merged in the other direction.
    """
    with database.write() as session:
        if into:
            target = _row(session, team, into)
            if into == fingerprint or target.merged_into:
                raise InputError(f"{into} is already merged into {target.merged_into or 'itself'}")
            if session.scalars(_merged_into(team, fingerprint)).first() is not None:
                raise InputError(f"other failures are merged into {fingerprint}; split them first")
        _row(session, team, fingerprint).merged_into = into


def _merged_into(team: str, fingerprint: str) -> Select[str]:
    return (
        select(KnownFailure.fingerprint)
        .where(KnownFailure.team == team, KnownFailure.merged_into == fingerprint)
        .order_by(KnownFailure.fingerprint)
    )


def _row(session: Session, team: str, fingerprint: str) -> KnownFailure:
    _check(session, team, fingerprint)
    insert_once(
        session,
        KnownFailure,
        team=team,
        fingerprint=fingerprint,
        resolution="",
        resolved_by="",
        merged_into="",
    )
    return session.get_one(KnownFailure, (team, fingerprint), with_for_update=True)


def _check(session: Session, team: str, fingerprint: str) -> None:
    of_team = (
        select(JobRow.id).where(JobRow.team == team, JobRow.fingerprint == fingerprint).limit(1)
    )
    if session.scalar(of_team) is None:
        raise InputError(f"no failure has the fingerprint {fingerprint!r}")
