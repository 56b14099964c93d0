"""Teams in a server: IDs of their jobs, their tokens, and sessions.

A token is 256 random bits; the store contains only their SHA-256. Random bits require no slow hash,
because they cannot be guessed from a list (NIST SP 800-63B-4, Section 3.1.3, on look-up secrets).
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from epochzero.errors import InputError, suggestion
from epochzero.run.records.identity import derived_job
from epochzero.store.bulk_insert import insert_once
from epochzero.store.database import Database
from epochzero.store.schema import JobRow, SignIn, Team, Token

Role = Literal["reader", "writer", "admin", "operator"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each role includes the permissions of those before it. Operators also add teams; they do not see their data."""

SESSION_S = 12 * 3600.0
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_LONGEST_KEY = 64
_PREFIX = "ez_"


@dataclass(frozen=True, slots=True)
class Viewer:
    """The team and role of a token or session.

    Attributes:
        csrf: the token of the session's forms; empty without a session.
    """

    team: str
    name: str
    role: Role
    csrf: str = ""


@dataclass(frozen=True, slots=True)
class TeamSummary:
    """A team with the number of its valid tokens."""

    name: str
    created: float
    tokens: int


@dataclass(frozen=True, slots=True)
class TokenDetails:
    """A listed token; times in seconds since the epoch."""

    id: int
    team: str
    name: str
    role: str
    created: float
    expires: float | None
    revoked: float | None


def job_key(team: str, job: str) -> str:
    """The stored ID of a team's job; a stored ID is returned unchanged."""
    if not team or job.startswith(f"{team}."):
        return job
    key = f"{team}.{job}"
    return key if len(key) <= _LONGEST_KEY else f"{team}.{derived_job(job)}"


def is_own(database: Database, team: str, key: str) -> bool:
    """Whether a job exists and belongs to a team."""
    with database.read() as session:
        return session.scalar(select(JobRow.team).where(JobRow.id == key)) == team


def add_team(database: Database, name: str) -> None:
    """Creates a team unless it exists.

    Raises:
        InputError: the name is not valid.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid team name; use 1 to 20 lowercase letters, digits and hyphens"
        )
    with database.write() as session:
        insert_once(session, Team, name=name, created=time.time())


def teams(database: Database) -> list[str]:
    """The names of all teams, sorted."""
    with database.read() as session:
        return list(session.scalars(select(Team.name).order_by(Team.name)))


def team_summaries(database: Database) -> Sequence[TeamSummary]:
    """All teams, sorted by name."""
    is_valid = Token.revoked.is_(None), or_(Token.expires.is_(None), Token.expires > time.time())
    query = (
        select(Team.name, Team.created, func.count(Token.id))
        .outerjoin(Token, and_(Token.team == Team.name, *is_valid))
        .group_by(Team.name, Team.created)
    )
    with database.read() as session:
        return [TeamSummary(*row) for row in session.execute(query.order_by(Team.name))]


def add_token(
    database: Database, team: str, name: str, role: Role, *, days: float | None = None
) -> str:
    """Creates a token and returns it; it cannot be read again.

    Args:
        team: its team.
        name: of the person or machine that uses it.
        role: its permissions.
        days: validity; None for unlimited.

    Raises:
        InputError: no such team.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    now = time.time()
    with database.write() as session:
        if session.get(Team, team) is None:
            create = f"create it with `epochzero serve team {team}`"
            known = session.scalars(select(Team.name))
            raise InputError(f"no team {team!r}; {suggestion(team, known, create)}")
        expires = None if days is None else now + days * 86_400
        digest = _digest(token)
        session.add(
            Token(team=team, name=name, role=role, digest=digest, created=now, expires=expires)
        )
    return token


def tokens(database: Database, team: str | None = None) -> Sequence[TokenDetails]:
    """The tokens of a team, or of all teams, without the secrets."""
    query = select(Token).order_by(Token.id)
    with database.read() as session:
        found = session.scalars(query if team is None else query.where(Token.team == team)).all()
        return [
            TokenDetails(t.id, t.team, t.name, t.role, t.created, t.expires, t.revoked)
            for t in found
        ]


def revoke_token(database: Database, identity: int, *, team: str | None = None) -> None:
    """Revokes a token and ends its sessions.

    Raises:
        InputError: no such token, or it belongs to another team.
    """
    with database.write() as session:
        token = session.get(Token, identity)
        if token is None or (team is not None and token.team != team):
            raise InputError(f"no token {identity}")
        session.execute(
            update(Token)
            .where(Token.id == identity, Token.revoked.is_(None))
            .values(revoked=time.time())
        )
        session.execute(delete(SignIn).where(SignIn.token_id == identity))


def viewer_of(database: Database, token: str) -> Viewer | None:
    """The viewer of a token; None if it is unknown, expired or revoked."""
    with database.read() as session:
        found = session.scalars(select(Token).where(Token.digest == _digest(token))).one_or_none()
        return None if found is None or not _is_valid(found) else _viewer(found)


def sign_in(database: Database, token: str) -> str | None:
    """Starts a session with a token and returns its cookie; None if the token is not valid."""
    with database.write() as session:
        found = session.scalars(select(Token).where(Token.digest == _digest(token))).one_or_none()
        return None if found is None or not _is_valid(found) else _begin(session, found.id)


def sign_in_account(database: Database, subject: str, viewer: Viewer) -> str:
    """Starts a session of a person whom another service has identified, and returns its cookie.

    The person is listed among the tokens until the session ends, so that an admin can see and end it. No text
    has the digest of such a row: it is not a bearer token.

    Args:
        subject: identifies the person, whatever they are called.
        viewer: team, name and role.

    Raises:
        InputError: no such team.
    """
    digest = f"account:{_digest(f'{viewer.team} {subject}')[:50]}"
    now = time.time()
    with database.write() as session:
        if session.get(Team, viewer.team) is None:
            raise InputError(f"no team {viewer.team!r}")
        insert_once(
            session,
            Token,
            team=viewer.team,
            name=viewer.name,
            role=viewer.role,
            digest=digest,
            created=now,
        )
        account = session.scalars(select(Token).where(Token.digest == digest)).one()
        account.name, account.role = viewer.name, viewer.role
        account.expires, account.revoked = now + SESSION_S, None
        return _begin(session, account.id)


def signed_in(database: Database, cookie: str) -> Viewer | None:
    """The viewer of a session; None if it does not exist or its token is no longer valid."""
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


def _begin(session: Session, token_id: int) -> str:
    """Adds a session and returns its cookie; sessions that are over are removed."""
    now = time.time()
    cookie = secrets.token_urlsafe(32)
    session.execute(delete(SignIn).where(SignIn.expires < now))
    session.add(
        SignIn(
            digest=_digest(cookie),
            token_id=token_id,
            csrf=secrets.token_urlsafe(32),
            created=now,
            expires=now + SESSION_S,
        )
    )
    return cookie


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _is_valid(token: Token) -> bool:
    return token.revoked is None and (token.expires is None or token.expires > time.time())


def _viewer(token: Token, csrf: str = "") -> Viewer:
    role = next((role for role in ROLES if role == token.role), ROLES[0])
    return Viewer(token.team, token.name, role, csrf)
