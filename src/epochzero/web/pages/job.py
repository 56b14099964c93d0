"""Page of one job: cause and fixes with evidence, then the course of the run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from signal import Signals
from typing import Annotated, Any

import numpy as np
from fastapi import HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from markupsafe import Markup

from epochzero import taxonomy
from epochzero.diagnose.model import FAILURES
from epochzero.errors import InputError
from epochzero.number_formats import duration
from epochzero.redact import redact_log
from epochzero.run.records.model import HANG_EVENT, HANG_OVER_EVENT, SLOW_RANK_EVENT
from epochzero.run.watch.live import EVENT as WATCHED
from epochzero.run.watch.model import WatchResult, of_dict
from epochzero.run.watch.plot import chart
from epochzero.store.database import Database, StoreError
from epochzero.store.failure_notes import known, merged_with
from epochzero.store.issues import PARTITION
from epochzero.store.job_details import (
    AttemptDetails,
    JobDetails,
    RankDetails,
    Usage,
    job_details,
    read_log,
    usage,
)
from epochzero.store.logs import Lines, last_lines
from epochzero.store.outcomes import image_of
from epochzero.store.queries import JobFilter, JobSummary, find_jobs
from epochzero.web.access import Reads
from epochzero.web.pages.charts import span
from epochzero.web.pages.log import log_name, range_of, rank_name
from epochzero.web.pages.responses import Action, page, pages_router
from epochzero.web.problems import or_404
from epochzero.web.state import Store

router = pages_router()

_AROUND = 4
"""Number of log lines shown before and after the root cause."""
_TAIL_LINES = 40
_MOST_RANKS = 24
_MOST_SAME = 10
_SIGNALS = {Signal.value: Signal.name for Signal in Signals}
_UNITS = (("hours", 3600.0), ("minutes", 60.0))
_SUSPICIOUS = (HANG_EVENT, HANG_OVER_EVENT, SLOW_RANK_EVENT, "loss_not_finite")
_LARGEST_EXCERPT = 64 << 20
"""Maximum number of log bytes that are searched for a line while rendering a job's page."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The root line with the surrounding lines of the log."""

    link: str
    root_line: int
    found: Lines


@dataclass(frozen=True, slots=True)
class RankRow:
    """A rank in the table of its attempt.

    Attributes:
        took: duration in seconds, up to now for a running rank.
        ending: how it ended, as text.
        bar: its time within the attempt.
        is_root: whether it contains the root cause.
    """

    rank: RankDetails
    name: str
    took: float
    ending: str
    bar: Markup
    is_root: bool


@router.get("/jobs/{identity}", response_model=None)
def job(
    request: Request,
    viewer: Reads,
    store: Store,
    identity: str,
    attempt: Annotated[int | None, Query(ge=1)] = None,
    format: Annotated[str, Query(pattern="html|json")] = "html",
) -> Response:
    """Shows all data about a job, by default of its last attempt."""
    with or_404(f"No job has the ID {identity}."):
        details = job_details(store, identity, team=viewer.team)
    if format == "json":
        headers = {"Content-Disposition": f'attachment; filename="{identity}.json"'}
        return JSONResponse(details.to_dict(), headers=headers)
    shown = _attempt(details, attempt)
    rank = _first_cause(shown)
    diagnosis = rank.diagnosis if rank else None
    fingerprints = _fingerprints(store, viewer.team, details.summary.fingerprint)
    same, good = _others(store, details.summary, viewer.team, fingerprints)
    moment = time.time()
    unit, curves = _curves(usage(store, rank.id) if rank else ())
    return page(
        request, viewer, "job",
        title=details.summary.name,
        now=tuple(_now(details, diagnosis, good)),
        exports=("json",),
        job=details,
        summary=details.summary,
        moment=moment,
        attempt=shown,
        rank=rank,
        diagnosis=diagnosis if diagnosis and diagnosis.get("outcome") in FAILURES else None,
        retry=taxonomy.retries().get(str((diagnosis or {}).get("retry", "")))
        or taxonomy.retries()["unknown"],
        excerpt=_excerpt(store, identity, shown, rank),
        tail=_tail(store, identity, shown) if shown.state == "running" else (),
        ranks=_rows(shown, rank, moment),
        length=(shown.ended or moment) - shown.started,
        unit=unit,
        curves=curves,
        watched=_watched(rank) if rank else None,
        environment=_environment(details, rank) if rank else (),
        rank_name=rank_name,
        most_ranks=_MOST_RANKS,
        failure=fingerprints[0],
        same=same,
        good=good,
    )  # fmt: skip


def _attempt(details: JobDetails, number: int | None) -> AttemptDetails:
    found = [attempt for attempt in details.attempts if number in (None, attempt.number)]
    if not found:
        raise HTTPException(404, f"This job has no attempt {number}.")
    return found[-1]


def _first_cause(attempt: AttemptDetails) -> RankDetails | None:
    """The rank whose diagnosis counts for the attempt: the first that ended."""
    diagnosed = [rank for rank in attempt.ranks if rank.diagnosis]
    ordered = sorted(
        diagnosed or attempt.ranks, key=lambda rank: (rank.ended or float("inf"), rank.id)
    )
    return ordered[0] if ordered else None


def _now(
    details: JobDetails, diagnosis: Mapping[str, Any] | None, good: JobSummary | None
) -> Iterator[Action]:
    state = details.summary.state
    if state == "running":
        yield from _suspicions(details.attempts[-1])
        yield Action("The job is running. This page reloads every 15 s.")
        return
    if state == "succeeded":
        yield Action("The job succeeded. No action is required.")
        return
    if not diagnosis:
        yield Action("The cause is unknown. Diagnose the job's log.",
                   command="epochzero diagnose FILE")  # fmt: skip
    else:
        for fix in diagnosis.get("fixes", ())[:3]:
            yield Action(str(fix))
        advice = {
            "may_succeed": "Restart the job unchanged: the failure is transient.",
            "fails_again": "Do not restart the job unchanged: it would fail again.",
        }.get(str(diagnosis.get("retry")))
        if advice:
            yield Action(advice)
    if good is not None:
        link = f"/targets?left=job:{good.id}&right=job:{details.summary.id}"
        yield Action("Compare it with the last successful run of the same name.", link=link)


def _suspicions(attempt: AttemptDetails) -> Iterator[Action]:
    """The last report about each hang, slow rank and invalid loss of a running attempt."""
    last = {}
    for rank in attempt.ranks:
        for event in rank.events:
            what = str(event["what"])
            if what in _SUSPICIOUS:
                last[rank.id, what.removesuffix("_over"), event["rank"]] = event
    for event in last.values():
        if event["what"] != HANG_OVER_EVENT:
            text = str(event["text"]).rstrip(".")
            yield Action(f"{text[:1].upper()}{text[1:]}.")


def _excerpt(
    store: Database, identity: str, attempt: AttemptDetails, rank: RankDetails | None
) -> Excerpt | None:
    root = ((rank.diagnosis if rank else None) or {}).get("root") or {}
    line = root.get("line")
    if rank is None or not isinstance(line, int):
        return None
    name = log_name(rank, str(root.get("file", "")))
    stored = next((log.stored or 0 for log in rank.logs if log.name == name), 0)
    if not name or stored > _LARGEST_EXCERPT:
        return None
    first = max(1, line - _AROUND)
    try:
        found = range_of(store, identity, attempt.number, rank.id, name, first, 2 * _AROUND + 1)
    except StoreError:
        raise
    except InputError:
        return None
    link = f"/jobs/{identity}/attempts/{attempt.number}/ranks/{rank.id}/logs/{name}"
    return Excerpt(f"{link}?line={line}#L{line}", line, found)


def _tail(store: Database, identity: str, attempt: AttemptDetails) -> Sequence[str]:
    """The last lines of a running job, as far as they have arrived."""
    for rank in attempt.ranks:
        if rank.state == "running":
            try:
                parts = read_log(
                    store,
                    identity,
                    attempt=attempt.number,
                    name="output",
                    rank_id=rank.id,
                    text=redact_log,
                )
                return last_lines(parts, _TAIL_LINES)
            except StoreError:
                raise
            except InputError:
                continue
    return ()


def _rows(attempt: AttemptDetails, root: RankDetails | None, moment: float) -> Sequence[RankRow]:
    """The ranks of an attempt, ordered by root cause and end time."""
    end = attempt.ended or max((rank.ended or moment for rank in attempt.ranks), default=moment)
    ordered = sorted(attempt.ranks, key=lambda rank: (rank is not root, rank.ended or end, rank.id))
    failed = attempt.state not in ("succeeded", "running")
    return [
        _row(rank, attempt.started, end, is_root=failed and rank is root)
        for rank in ordered[:_MOST_RANKS]
    ]


def _row(rank: RankDetails, begin: float, end: float, *, is_root: bool) -> RankRow:
    took = (rank.ended or end) - rank.started
    since = rank.started - begin
    bar = span(
        since, since + took, end - begin,
        kind=f"s-{rank.state}{' root' * is_root}",
        label=f"{rank.state} after {duration(took)}",
        marks=[(since + event["elapsed"], str(event["text"])) for event in rank.events],
    )  # fmt: skip
    return RankRow(rank, rank_name(rank), took, _ending(rank), bar, is_root)


def _ending(rank: RankDetails) -> str:
    """How it ended, as text."""
    words = []
    if rank.signal is not None:
        words.append(_SIGNALS.get(rank.signal, f"signal {rank.signal}"))
    elif rank.exit_code is not None:
        words.append(f"exit code {rank.exit_code}")
    if rank.why:
        words.append(f"by {rank.why.replace('_', ' ')}")
    return ", ".join(words)


def _curves(used: Sequence[Usage]) -> tuple[str, Sequence[tuple[str, Markup]]]:
    """Charts of a rank's resource usage over time, and the time unit."""
    unit, length = next(
        (pair for pair in _UNITS if used and used[-1].elapsed > 3 * pair[1]), ("seconds", 1.0)
    )
    measures = (
        ("CPU, cores", [usage.cpu_percent / 100 for usage in used]),
        ("Memory, GB", [usage.memory_bytes / 1e9 for usage in used]),
        ("GPU utilization, %", [usage.gpu_percent for usage in used]),
        ("GPU memory, GB", [None if u.gpu_memory_bytes is None else u.gpu_memory_bytes / 1e9
                            for u in used]),
    )  # fmt: skip
    drawn = []
    for caption, values in measures:
        points = [(u.elapsed / length, value) for u, value in zip(used, values, strict=True)
                  if value is not None]  # fmt: skip
        if len(points) > 1:
            series = np.array(points, dtype=np.float64)
            # The chart escapes its content; it contains no text of a job.
            drawn.append((caption, Markup(chart({caption: series}, caption, from_zero=True))))
    return unit, drawn


def _watched(rank: RankDetails) -> WatchResult | None:
    """The last verdict on the training, if it was watched."""
    for event in reversed(rank.events):
        if event["what"] == WATCHED:
            try:
                return of_dict(json.loads(event["details"]["watched"]))
            except (KeyError, TypeError, ValueError):
                return None
    return None


def _environment(details: JobDetails, rank: RankDetails) -> Sequence[tuple[str, str]]:
    """Properties of the environment of a rank, as far as known."""
    snapshot = rank.snapshot
    known = {
        "partition": details.scheduler.get(PARTITION),
        "image": image_of(snapshot),
        **{name: snapshot.get(name) for name in ("python", "cuda", "driver")},
        "commit": str(snapshot.get("commit") or "")[:12],
    }
    return [(name, str(value)) for name, value in known.items() if value]


def _fingerprints(store: Database, team: str, fingerprint: str) -> tuple[str, ...]:
    """The fingerprints of a job's failure, the displayed one first."""
    into = known(store, team, fingerprint).merged_into if fingerprint else ""
    return merged_with(store, team, into or fingerprint)


def _others(
    store: Database, summary: JobSummary, team: str, fingerprints: tuple[str, ...]
) -> tuple[Sequence[JobSummary], JobSummary | None]:
    """The last jobs with the same failure, and the last successful job of the same name."""
    same: list[JobSummary] = []
    if summary.fingerprint:
        wanted = JobFilter(team=team, same_failure=fingerprints, limit=_MOST_SAME + 1)
        same = [job for job in find_jobs(store, wanted) if job.id != summary.id][:_MOST_SAME]
    good: list[JobSummary] = []
    if summary.state in ("failed", "lost"):
        alike = JobFilter(team=team, same_name=summary.name, state="succeeded", limit=1)
        good = find_jobs(store, alike)
    return same, (good[0] if good else None)
