"""Teams in a service: their jobs' identities, their tokens, and who is signed in.

A token is 256 random bits; the store has its SHA-256 only. Random bits need no slow hash: there is no
list of likely ones to try (NIST SP 800-63B-4, Section 3.1.3, on look-up secrets).
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import delete, select, update

from epochzero.errors import InputError
from epochzero.run.identity import derived_job
from epochzero.store.bulk_insert import insert_once
from epochzero.store.database import Database
from epochzero.store.schema import JobRow, SignIn, Team, Token

Role = Literal["reader", "writer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""

SESSION_S = 12 * 3600.0
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_LONGEST_KEY = 64
_PREFIX = "ez_"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whom a token, or the session that it began, is of.

    Attributes:
        csrf: what the forms of a session bear; empty without a session.
    """

    team: str
    name: str
    role: Role
    csrf: str = ""


@dataclass(frozen=True, slots=True)
class TokenDetails:
    """A token as it is listed; times in seconds since the epoch."""

    id: int
    team: str
    name: str
    role: str
    created: float
    expires: float | None
    revoked: float | None


def job_key(team: str, job: str) -> str:
    """The identity in the store of a team's job; itself where it is one already."""
    if not team or job.startswith(f"{team}."):
        return job
    key = f"{team}.{job}"
    return key if len(key) <= _LONGEST_KEY else f"{team}.{derived_job(job)}"


def is_own(database: Database, team: str, key: str) -> bool:
    """Whether a job is there and a team's.

    Raises:
        StoreError: the database does not answer.
    """
    with database.read() as session:
        return session.scalar(select(JobRow.team).where(JobRow.id == key)) == team


def add_team(database: Database, name: str) -> None:
    """Makes a team; nothing when there is one of this name.

    Raises:
        InputError: this can be no name of a team.
        StoreError: the store cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can be no team: a name is 1 to 20 lower-case letters, digits and hyphens"
        )
    with database.write() as session:
        insert_once(session, Team, name=name, created=time.time())


def teams(database: Database) -> list[str]:
    """The names of all teams, in order."""
    with database.read() as session:
        return list(session.scalars(select(Team.name).order_by(Team.name)))


def add_token(
    database: Database, team: str, name: str, role: Role, *, days: float | None = None
) -> str:
    """Makes a token and returns it; nobody can tell it again.

    Args:
        database: the store.
        team: whose.
        name: of the person or the machine that it is for.
        role: what it allows.
        days: for how long; None for ever.

    Raises:
        InputError: there is no such team.
        StoreError: the store cannot be written.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    now = time.time()
    with database.write() as session:
        if session.get(Team, team) is None:
            raise InputError(f"there is no team {team!r}: epochzero serve team {team}")
        expires = None if days is None else now + days * 86_400
        digest = _digest(token)
        session.add(
            Token(team=team, name=name, role=role, digest=digest, created=now, expires=expires)
        )
    return token


def tokens(database: Database, team: str | None = None) -> Sequence[TokenDetails]:
    """The tokens of a team, or of all; none tells the token itself."""
    query = select(Token).order_by(Token.id)
    with database.read() as session:
        found = session.scalars(query if team is None else query.where(Token.team == team)).all()
        return [
            TokenDetails(
                one.id, one.team, one.name, one.role, one.created, one.expires, one.revoked
            )
            for one in found
        ]


def revoke_token(database: Database, identity: int, *, team: str | None = None) -> None:
    """Ends a token and the sessions that it began.

    Raises:
        InputError: there is no such token, or it is another team's.
        StoreError: the store cannot be written.
    """
    with database.write() as session:
        token = session.get(Token, identity)
        if token is None or (team is not None and token.team != team):
            raise InputError(f"there is no token {identity}")
        session.execute(
            update(Token)
            .where(Token.id == identity, Token.revoked.is_(None))
            .values(revoked=time.time())
        )
        session.execute(delete(SignIn).where(SignIn.token_id == identity))


def viewer_of(database: Database, token: str) -> Viewer | None:
    """Whom a token is of; None where it is none, has expired or was revoked."""
    with database.read() as session:
        found = session.scalars(select(Token).where(Token.digest == _digest(token))).one_or_none()
        return None if found is None or not _is_valid(found) else _viewer(found)


def sign_in(database: Database, token: str) -> str | None:
    """Begins a session by a token: what its cookie holds; None where the token is not valid."""
    now = time.time()
    cookie = secrets.token_urlsafe(32)
    with database.write() as session:
        session.execute(delete(SignIn).where(SignIn.expires < now))
        found = session.scalars(select(Token).where(Token.digest == _digest(token))).one_or_none()
        if found is None or not _is_valid(found):
            return None
        session.add(
            SignIn(
                digest=_digest(cookie),
                token_id=found.id,
                csrf=secrets.token_urlsafe(32),
                created=now,
                expires=now + SESSION_S,
            )
        )
    return cookie


def signed_in(database: Database, cookie: str) -> Viewer | None:
    """Whom a session is of; None where there is none, or its token is not valid any more."""
    query = (
        select(SignIn, Token)
        .join(Token, Token.id == SignIn.token_id)
        .where(SignIn.digest == _digest(cookie), SignIn.expires > time.time())
    )
    with database.read() as session:
        found = session.execute(query).one_or_none()
        return (
            None if found is None or not _is_valid(found[1]) else _viewer(found[1], found[0].csrf)
        )


def sign_out(database: Database, cookie: str) -> None:
    """Ends a session."""
    with database.write() as session:
        session.execute(delete(SignIn).where(SignIn.digest == _digest(cookie)))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _is_valid(token: Token) -> bool:
    return token.revoked is None and (token.expires is None or token.expires > time.time())


def _viewer(token: Token, csrf: str = "") -> Viewer:
    role = next((role for role in ROLES if role == token.role), ROLES[0])
    return Viewer(token.team, token.name, role, csrf)
