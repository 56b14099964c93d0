"""What people say of a team's failures, by fingerprint."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.store.bulk_insert import insert_once
from epochzero.store.database import Database
from epochzero.store.schema import JobRow, KnownFailure, KnownFailureNote


@dataclass(frozen=True, slots=True)
class Remark:
    """A note of a person."""

    time: float
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a team says of a fingerprint.

    Attributes:
        resolution, resolved_by, resolved: how it is resolved, by whom and when; empty and None where it is not.
        merged_into: the fingerprint that it is shown with; empty for none.
        also: those that are shown with it.
        notes: in the order of time.
    """

    fingerprint: str
    resolution: str
    resolved_by: str
    resolved: float | None
    merged_into: str
    also: tuple[str, ...]
    notes: tuple[Remark, ...]


def known(database: Database, team: str, fingerprint: str) -> Known:
    """What a team says of a fingerprint; nothing of one that it said nothing of.

    Raises:
        StoreError: the database does not answer.
    """
    notes = (
        select(KnownFailureNote)
        .where(KnownFailureNote.team == team, KnownFailureNote.fingerprint == fingerprint)
        .order_by(KnownFailureNote.time, KnownFailureNote.id)
    )
    with database.read() as session:
        row = session.get(KnownFailure, (team, fingerprint))
        return Known(
            fingerprint,
            row.resolution if row else "",
            row.resolved_by if row else "",
            row.resolved if row else None,
            row.merged_into if row else "",
            tuple(session.scalars(_merged_into(team, fingerprint))),
            tuple(Remark(note.time, note.author, note.text) for note in session.scalars(notes)),
        )


def merged_with(database: Database, team: str, fingerprint: str) -> tuple[str, ...]:
    """A fingerprint, then those that are shown with it.

    Raises:
        StoreError: the database does not answer.
    """
    with database.read() as session:
        return fingerprint, *session.scalars(_merged_into(team, fingerprint))


def add_note(database: Database, team: str, fingerprint: str, author: str, text: str) -> None:
    """Keeps what somebody says of a fingerprint.

    Raises:
        InputError: the team has no failure with it.
        StoreError: the store cannot be written.
    """
    with database.write() as session:
        _check(session, team, fingerprint)
        session.add(
            KnownFailureNote(
                team=team, fingerprint=fingerprint, time=time.time(), author=author, text=text
            )
        )


def resolve(database: Database, team: str, fingerprint: str, who: str, resolution: str) -> None:
    """Says how failures with a fingerprint are resolved; an empty text, that they are not.

    Raises:
        InputError: the team has no failure with it.
        StoreError: the store cannot be written.
    """
    with database.write() as session:
        row = _row(session, team, fingerprint)
        row.resolution = resolution
        row.resolved_by = who if resolution else ""
        row.resolved = time.time() if resolution else None


def merge(database: Database, team: str, fingerprint: str, into: str) -> None:
    """Shows a fingerprint with another from now on; an empty one splits it off again.

    Raises:
        InputError: the team has no failure with one of them, or they are merged the other way.
        StoreError: the store cannot be written.
    """
    with database.write() as session:
        if into:
            target = _row(session, team, into)
            if into == fingerprint or target.merged_into:
                raise InputError(f"{into} is shown with {target.merged_into or 'itself'} already")
            if session.scalars(_merged_into(team, fingerprint)).first() is not None:
                raise InputError(f"others are shown with {fingerprint}: split them off first")
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
