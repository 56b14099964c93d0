"""Issues: the failures with one fingerprint as something that a team works on.

An issue is created in the transaction that stores its first job, reopened by the first later job of newer code, and
assigned by the team's rules.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from sqlalchemy import ColumnElement, Exists, Row, and_, exists, not_, select, tuple_
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.store.bulk_insert import insert_each_once
from epochzero.store.database import Database
from epochzero.store.schema import AttemptRow, JobRow, KnownFailure, OwnerRule, Rank
from epochzero.store.search import matching_fingerprints, searched_words

IssueState = Literal["new", "ongoing", "regressed", "resolved", "ignored"]
NEW_S = 7 * 86_400.0
"""An issue is new for this long."""
NOBODY = "nobody"
PARTITION = "SLURM_JOB_PARTITION"


@dataclass(frozen=True, slots=True)
class IssueRule:
    """Assigns new issues: those whose first job matches a glob belong to an owner."""

    id: int
    kind: str
    pattern: str
    owner: str


@dataclass(frozen=True, slots=True)
class IssueFilter:
    """Conditions for issues; empty values match all.

    Attributes:
        state: an `IssueState`, or ``open`` for all that are neither resolved nor ignored.
        owner: exact; `NOBODY` for issues without one.
        text: words of its failures, notes or resolution.
    """

    state: str = ""
    owner: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.state or self.owner or self.text)

    def matches(self, team: str, fingerprint: ColumnElement[str], now: float) -> Exists:
        """Condition that the issue with a fingerprint matches; a lookup for each row, not a list of all issues.

        Raises:
            InputError: no such state.
        """
        found = exists().where(KnownFailure.team == team, KnownFailure.fingerprint == fingerprint)
        if self.owner:
            owner = "" if self.owner == NOBODY else self.owner
            found = found.where(KnownFailure.owner == owner)
        if words := searched_words(self.text):
            found = found.where(matching_fingerprints(team, words))
        return found.where(_is_in(self.state, now)) if self.state else found


@dataclass(frozen=True, slots=True)
class IssueSummary:
    """What a list shows of an issue; see `KnownFailure`."""

    state: IssueState
    owner: str
    first_seen: float | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed job, as far as issues need it; `diagnosis` is in its JSON form."""

    job: JobRow
    commit: str
    diagnosis: Mapping[str, Any]


def state_of(row: KnownFailure | Row[*tuple[Any, ...]] | None, now: float) -> IssueState:
    """The state of an issue at a time, from its row or the columns that it depends on."""
    if row is None:
        return "ongoing"
    if row.ignored_until is not None and row.ignored_until > now:
        return "ignored"
    if row.regressed is not None:
        return "regressed"
    if row.resolved is not None:
        return "resolved"
    return "new" if row.first_seen is not None and row.first_seen > now - NEW_S else "ongoing"


def _is_in(state: str, now: float) -> ColumnElement[bool]:
    """Condition for a state, as in `state_of`.

    Raises:
        InputError: no such state.
    """
    row = KnownFailure
    ignored = and_(row.ignored_until.is_not(None), row.ignored_until > now)
    resolved = and_(row.resolved.is_not(None), row.regressed.is_(None))
    is_new = and_(row.resolved.is_(None), row.regressed.is_(None), row.first_seen > now - NEW_S)
    is_open = and_(not_(ignored), not_(resolved))
    conditions = {
        "ignored": ignored,
        "resolved": and_(not_(ignored), resolved),
        "regressed": and_(not_(ignored), row.regressed.is_not(None)),
        "new": and_(not_(ignored), is_new),
        "ongoing": and_(is_open, row.regressed.is_(None), row.first_seen <= now - NEW_S),
        "open": is_open,
    }
    if state not in conditions:
        raise InputError(f"{state!r} is not a state; choose one of {', '.join(conditions)}")
    return conditions[state]


def issue_summaries(
    database: Database, team: str, fingerprints: Sequence[str], now: float
) -> dict[str, IssueSummary]:
    """The issues of fingerprints; failures without one are omitted."""
    row = KnownFailure
    query = select(
        row.fingerprint, row.owner, row.first_seen, row.ignored_until, row.regressed, row.resolved
    ).where(row.team == team, row.fingerprint.in_(fingerprints))
    with database.read() as session:
        return {
            r.fingerprint: IssueSummary(state_of(r, now), r.owner, r.first_seen)
            for r in session.execute(query)
        }


def partition_of(job: JobRow) -> str:
    """The scheduler's partition of a job; empty if unknown."""
    return str(job.scheduler.get(PARTITION, "")) or job.partition


def record(session: Session, failed: Sequence[Failed]) -> None:
    """Creates the issues of failed jobs, and reopens resolved ones.

    Args:
        session: the session that writes the jobs.
        failed: jobs with a fingerprint, after their rows were updated.
    """
    by_key: dict[tuple[str, str], list[Failed]] = {}
    for failure in failed:
        by_key.setdefault((failure.job.team, failure.job.fingerprint), []).append(failure)
    if not by_key:
        return
    known = _known(session, sorted(by_key))
    new = [key for key in sorted(by_key) if key not in known]
    insert_each_once(session, KnownFailure, [_created(session, key, by_key[key]) for key in new])
    for key, row in known.items():
        for failure in sorted(by_key[key], key=lambda failure: failure.job.started):
            _seen(session, row, failure)


def _known(
    session: Session, keys: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], KnownFailure]:
    query = (
        select(KnownFailure)
        .where(tuple_(KnownFailure.team, KnownFailure.fingerprint).in_(keys))
        .order_by(KnownFailure.team, KnownFailure.fingerprint)
        .with_for_update()
    )
    return {(row.team, row.fingerprint): row for row in session.scalars(query)}


def _created(session: Session, key: tuple[str, str], failed: Sequence[Failed]) -> dict[str, Any]:
    """A new issue. Jobs of a store of an earlier version may have failed this way before."""
    team, fingerprint = key
    first = session.execute(
        select(JobRow.id, JobRow.started)
        .where(JobRow.team == team, JobRow.fingerprint == fingerprint)
        .order_by(JobRow.started, JobRow.id)
        .limit(1)
    ).one()
    commits = {failure.job.id: failure.commit for failure in failed}
    return {
        "team": team,
        "fingerprint": fingerprint,
        "resolution": "",
        "resolved_by": "",
        "merged_into": "",
        "owner": _owner(session, team, min(failed, key=lambda failure: failure.job.started)),
        "first_seen": first.started,
        "first_job": first.id,
        "first_commit": commits.get(first.id, ""),
    }


def _seen(session: Session, row: KnownFailure, failed: Failed) -> None:
    job = failed.job
    if row.first_seen is None or job.started < row.first_seen:
        row.first_seen, row.first_job, row.first_commit = job.started, job.id, failed.commit
    shown = row
    if row.merged_into:
        shown = session.get(KnownFailure, (row.team, row.merged_into)) or row
    if shown.resolved is None or shown.regressed is not None or job.started <= shown.resolved:
        return
    if shown.resolved_commit and _is_old_code(session, job.team, failed.commit, shown.resolved):
        return
    shown.regressed, shown.regressed_job = job.started, job.id


def _is_old_code(session: Session, team: str, commit: str, resolved: float) -> bool:
    """Whether a commit ran before the resolution; the store does not know the order of commits."""
    if not commit:
        return False
    query = (
        select(Rank.id)
        .join(AttemptRow, AttemptRow.id == Rank.attempt_id)
        .join(JobRow, JobRow.id == AttemptRow.job_id)
        .where(JobRow.team == team, Rank.commit == commit, JobRow.started < resolved)
    )
    return session.scalar(query.limit(1)) is not None


def _owner(session: Session, team: str, failed: Failed) -> str:
    """The owner by the first rule that matches."""
    frames = (failed.diagnosis.get("user_frame") or {}, *(failed.diagnosis.get("stack") or ()))
    values = {
        "user": [failed.job.user],
        "partition": [partition_of(failed.job)],
        "path": [str(frame.get("file") or "") for frame in frames],
    }
    for rule in rules_in(session, team):
        if any(_matches(value, rule) for value in values[rule.kind] if value):
            return rule.owner
    return ""


def _matches(value: str, rule: IssueRule) -> bool:
    """A path also matches a relative pattern at its end: jobs run in different directories."""
    if rule.kind != "path":
        return fnmatchcase(value, rule.pattern)
    return fnmatchcase(value, rule.pattern) or fnmatchcase(value, f"*/{rule.pattern}")


def rules_in(session: Session, team: str) -> Sequence[IssueRule]:
    """The ownership rules of a team, in order."""
    query = select(OwnerRule).where(OwnerRule.team == team).order_by(OwnerRule.id)
    return [IssueRule(row.id, row.kind, row.pattern, row.owner) for row in session.scalars(query)]


def owner_rules(database: Database, team: str) -> Sequence[IssueRule]:
    """The ownership rules of a team, in order."""
    with database.read() as session:
        return rules_in(session, team)


def add_owner_rule(database: Database, team: str, kind: str, pattern: str, owner: str) -> IssueRule:
    """Adds a rule behind the others.

    Raises:
        InputError: the kind does not exist, or a value is empty.
    """
    if kind not in ("path", "user", "partition"):
        raise InputError(f"{kind!r}: a rule matches a path, user or partition")
    if not pattern or not owner:
        raise InputError("a rule requires a pattern and an owner")
    with database.write() as session:
        row = OwnerRule(team=team, kind=kind, pattern=pattern, owner=owner)
        session.add(row)
        session.flush()
        return IssueRule(row.id, kind, pattern, owner)


def remove_owner_rule(database: Database, team: str, identity: int) -> None:
    """Delete a rule; the owners of issues do not change.

    Raises:
        InputError: the team has no such rule.
    """
    with database.write() as session:
        row = session.get(OwnerRule, identity)
        if row is None or row.team != team:
            raise InputError(f"no rule {identity}")
        session.delete(row)


def assign(database: Database, team: str, fingerprint: str, owner: str) -> None:
    """Makes a person the owner of an issue; an empty name removes the owner.

    Raises:
        InputError: the team has no such issue.
    """
    with database.write() as session:
        _issue(session, team, fingerprint).owner = owner


def ignore(database: Database, team: str, fingerprint: str, days: float) -> None:
    """Hides an issue for some days; 0 shows it again.

    Raises:
        InputError: the team has no such issue.
    """
    with database.write() as session:
        until = time.time() + days * 86_400 if days > 0 else None
        _issue(session, team, fingerprint).ignored_until = until


def _issue(session: Session, team: str, fingerprint: str) -> KnownFailure:
    row = session.get(KnownFailure, (team, fingerprint), with_for_update=True)
    if row is None:
        raise InputError(f"no failure has the fingerprint {fingerprint!r}")
    return row
