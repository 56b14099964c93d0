"""What began with a failure: properties of its first jobs that no earlier job of the same name had.

A property of all first jobs counts. The code may change further while a failure lasts: of commits, the first one counts
if no later job ran the earlier code. Unknown values are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from epochzero.store.outcomes import IMAGES, image_of
from epochzero.store.schema import AttemptRow, JobRow, Rank

_MOST_JOBS = 20
_LEAST_BEFORE = 2
"""One earlier job differs from a later one in many irrelevant properties."""
_MOST_VALUE = 120
_MOST_SHOWN = 12
_SINGLE = ("commit", "driver", "cuda", "python", "system")
_ALWAYS_KNOWN = ("package", "variable")
"""Kinds whose empty value means that a job lacked it; else the value is unknown."""
_OWN = ("EPOCHZERO_", "SLURM_", "PMI", "OMPI_", "PMIX_", "TORCHELASTIC_")
_OF_ONE_RUN = frozenset(
    """
    PWD OLDPWD SHLVL _ HOSTNAME RANK LOCAL_RANK MASTER_ADDR MASTER_PORT TMPDIR JOB_ID RUN_ID
    XDG_SESSION_ID SSH_CLIENT SSH_CONNECTION SSH_TTY CUDA_VISIBLE_DEVICES WANDB_RUN_ID
    """.split()
)
"""Variables that differ between any two runs."""


@dataclass(frozen=True, slots=True)
class IssueChange:
    """A property that changed with the first failures.

    Attributes:
        kind: commit, image, driver, cuda, python, system, node, package or variable.
        name: of a package or variable, else empty.
        before: the last values of earlier jobs; empty if they lacked it.
        after: the value of the first failed job.
    """

    kind: str
    name: str
    before: str
    after: str


def changes_with(
    session: Session, team: str, fingerprints: Collection[str], name: str, first: float
) -> tuple[IssueChange, ...]:
    """Compares the first failed jobs with the last jobs of the same name before them.

    Args:
        session: a reading session.
        team: of the jobs.
        fingerprints: of the failure.
        name: of the jobs.
        first: start of the first failed job.

    Returns:
        At most a dozen changes, the usual causes first; none if there are too few earlier jobs.
    """
    named = JobRow.team == team, JobRow.name == name
    failed = JobRow.fingerprint.in_(fingerprints)
    earlier = _jobs(session, (*named, ~failed, JobRow.started < first), newest=True)
    later = _jobs(session, (*named, failed), newest=False)
    if len(earlier) < _LEAST_BEFORE or not later:
        return ()
    before, after = [_properties(value) for value in earlier], [_properties(v) for v in later]
    return tuple(_changes(before, after))[:_MOST_SHOWN]


def _jobs(session: Session, those: Sequence[ColumnElement[bool]], *, newest: bool) -> Sequence[Any]:
    """The first rank of each of the first or last of some jobs, in this order."""

    def ordered(jobs: Any) -> Sequence[ColumnElement[Any]]:
        return [c.desc() if newest else c.asc() for c in (jobs.started, jobs.id)]

    columns = (JobRow.id, JobRow.host, JobRow.started)
    # The jobs are chosen first: sorting ranks would read those of all jobs of the name.
    jobs = select(*columns).where(*those).order_by(*ordered(JobRow)).limit(_MOST_JOBS).subquery().c
    query = (
        select(jobs.id, jobs.host, Rank.snapshot)
        .join(AttemptRow, AttemptRow.job_id == jobs.id)
        .join(Rank, Rank.attempt_id == AttemptRow.id)
        .order_by(*ordered(jobs), Rank.id)
    )
    found: dict[str, Any] = {}
    for row in session.execute(query):
        found.setdefault(row.id, row)
    return list(found.values())


def _properties(row: Any) -> dict[tuple[str, str], str]:
    snapshot: Mapping[str, Any] = row.snapshot or {}
    found = {(kind, ""): str(snapshot.get(kind) or "") for kind in _SINGLE}
    variables = snapshot.get("variables") or {}
    # The row of a job names its image only if it failed.
    found |= {("node", ""): row.host, ("image", ""): image_of(snapshot)}
    for package, version in (snapshot.get("packages") or {}).items():
        found["package", str(package)] = str(version)
    for variable, value in variables.items():
        if not variable.startswith(_OWN) and variable not in (*_OF_ONE_RUN, *IMAGES):
            found["variable", str(variable)] = str(value)
    return found


def _changes(
    before: Sequence[Mapping[tuple[str, str], str]], after: Sequence[Mapping[tuple[str, str], str]]
) -> Iterator[IssueChange]:
    kinds = ("commit", "image", "driver", "cuda", "python", "node", "system", "package", "variable")
    keys = {key for record in after for key in record} | {key for r in before for key in r}
    for kind, name in sorted(keys, key=lambda key: (kinds.index(key[0]), key[1])):
        old, new = (_values(jobs, kind, name) for jobs in (before, after))
        if not old or not new or set(old) & set(new) or (len(new) > 1 and kind != "commit"):
            continue
        if len(after) > 1 or len(old) == 1:
            earlier = ", ".join(filter(None, old[:3]))
            yield IssueChange(kind, name, earlier[:_MOST_VALUE], new[0][:_MOST_VALUE])


def _values(jobs: Sequence[Mapping[tuple[str, str], str]], kind: str, name: str) -> Sequence[str]:
    """The known values of a property, each once, in the order of the jobs."""
    values = [job.get((kind, name), "") for job in jobs]
    return list(dict.fromkeys(value for value in values if value or kind in _ALWAYS_KNOWN))
