"""Overview page: recent failures, their cost, new failures, and possible savings."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query, Request, Response
from markupsafe import Markup

from epochzero.store.daily_counts import DAY_S, Period
from epochzero.store.database import Database
from epochzero.store.failures import newest_fixes
from epochzero.store.issues import IssueFilter, IssueSummary, issue_summaries
from epochzero.store.overview import FAILED, Count, FingerprintCount, counts, fingerprints
from epochzero.web.access import Reads
from epochzero.web.exports import Export, table
from epochzero.web.pages.charts import REST, stacks
from epochzero.web.pages.jobs import first_steps
from epochzero.web.pages.period import RequestedPeriod, asked_period, day_name
from epochzero.web.pages.responses import Action, Format, page, pages_router, why
from epochzero.web.state import Store

router = pages_router()

_MOST_COLORS = 6
_MOST_BARS = 62
_MOST_SHOWN = 8
_LEAST_WASTED = 1.0
"""GPU hours."""
_STEP_S = 600.0
"""The last 24 hours begin at a multiple of it, so that their statements can be reused."""
_OPEN = IssueFilter(state="open")
_COLUMNS = ("day", "state", "category", "jobs", "gpu_hours", "wasted_gpu_hours", "caught",
            "caught_gpu_hours")  # fmt: skip
_OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of a period.

    Attributes:
        lost: GPU hours of failed jobs.
        wasted: GPU hours of retries that failed again.
        checked: failed jobs whose code was checked.
        caught: those of them whose failure the check predicted.
    """

    jobs: int
    failed: int
    lost: float
    hours: float
    wasted: float
    checked: int
    caught: int


@dataclass(frozen=True, slots=True)
class FailingIssue:
    """An open issue.

    Attributes:
        count: its jobs in a period.
        fix: what to do, by the diagnosis of its newest job; empty if unknown.
    """

    count: FingerprintCount
    issue: IssueSummary
    fix: str


@dataclass(frozen=True, slots=True)
class FailingIssues:
    """The open issues of a period, the costliest first."""

    title: str
    issues: Sequence[FailingIssue]


@router.get("/", response_model=None)
def overview(
    request: Request,
    viewer: Reads,
    store: Store,
    days: Annotated[int | None, Query(ge=1, le=3650)] = None,
    since: str = "",
    until: str = "",
    format: Format = "html",
) -> Response:
    """Shows the totals of a period, by day and category."""
    asked = asked_period(days, since, until)
    step = 1 if format != "html" else -(-asked.length // _MOST_BARS)
    found = counts(store, viewer.team, asked.period, days=step)
    if format != "html":
        rows = [(day_name(c.day), *(getattr(c, name) for name in _COLUMNS[1:])) for c in found]
        return table(format, Export("overview", _COLUMNS, rows))
    sums, categories = totals(found), by_category(found)
    failing = _failing(store, viewer.team, asked)
    names = _named(tuple(categories))
    return page(
        request, viewer, "overview",
        title="Overview",
        now=tuple(_now(request, sums, failing)),
        failing=failing,
        asked=asked,
        totals=sums,
        chart=_chart(asked, step, found, names, lambda count: count.jobs, "Failed jobs"),
        chart_hours=_chart(asked, step, found, names, lambda c: c.gpu_hours, "GPU hours lost"),
        colors=tuple(zip(_colors(names), names, strict=True)),
        rows=categories,
    )  # fmt: skip


def totals(found: Sequence[Count]) -> Totals:
    """The sums over a period."""
    failed = [count for count in found if count.state in FAILED]
    return Totals(
        jobs=sum(count.jobs for count in found),
        failed=sum(count.jobs for count in failed),
        lost=sum(count.gpu_hours for count in failed),
        hours=sum(count.gpu_hours for count in found),
        wasted=sum(count.wasted_gpu_hours for count in found),
        checked=sum(count.checked for count in failed),
        caught=sum(count.caught for count in failed),
    )


def by_category(found: Sequence[Count]) -> dict[str, Totals]:
    """The sums of the failed jobs by category, the most frequent first."""
    parts: defaultdict[str, list[Count]] = defaultdict(list)
    for count in found:
        if count.state in FAILED:
            parts[count.category].append(count)
    sums = {category: totals(part) for category, part in parts.items()}
    return dict(sorted(sums.items(), key=lambda item: (-item[1].failed, item[0])))


def _failing(store: Database, team: str, asked: RequestedPeriod) -> Sequence[FailingIssues]:
    """The costliest open issues of the last 24 hours, then others of the period."""
    now = time.time()
    parts = [(f"Open issues of {asked.title}", asked.period)]
    if asked.period.until > now:
        day = Period(now // _STEP_S * _STEP_S - DAY_S, asked.period.until)
        parts = [
            ("Failing now, in the last 24 hours", day),
            (f"Also open, in {asked.title}", asked.period),
        ]
    found: dict[str, dict[str, FingerprintCount]] = {}
    shown: set[str] = set()
    for title, period in parts:
        if len(shown) == _MOST_SHOWN:
            break
        counted = fingerprints(
            store, team, period, wanted=_OPEN, sort="gpu_hours", limit=_MOST_SHOWN
        )
        others = [count for count in counted if count.fingerprint not in shown]
        found[title] = {other.fingerprint: other for other in others[: _MOST_SHOWN - len(shown)]}
        shown |= found[title].keys()
    issues = issue_summaries(store, team, list(shown), now)
    fixes = newest_fixes(store, team, list(shown))
    return [
        FailingIssues(
            title,
            [
                FailingIssue(count, issues[name], fixes.get(name, ""))
                for name, count in part.items()
                if name in issues
            ],
        )
        for title, part in found.items()
    ]


def _now(request: Request, sums: Totals, failing: Sequence[FailingIssues]) -> Iterator[Action]:
    """Advice that the table of failing issues does not give."""
    if not sums.jobs:
        yield from first_steps(request)
        return
    if not sums.failed:
        yield Action("No job failed. Choose a longer period to see earlier failures.")
        return
    if not any(part.issues for part in failing):
        yield Action("All failures of this period are resolved or ignored.", link="/failures")
    if sums.caught:
        yield Action(
            f"Act on the findings of check: it predicted {sums.caught:,} of {sums.checked:,} failures "
            "of checked jobs.",
            command="epochzero check -- python train.py",
        )
    if sums.wasted >= _LEAST_WASTED:
        text = f"Retry only transient failures: {sums.wasted:,.0f} GPU hours were spent on retries that failed again."
        yield Action(text, command="epochzero run --retries auto -- python train.py")


def _named(categories: Sequence[str]) -> Sequence[str]:
    """The categories with their own color, the most frequent first, then all others."""
    if len(categories) <= _MOST_COLORS:
        return categories
    return *categories[:_MOST_COLORS], _OTHERS


def _colors(names: Sequence[str]) -> Sequence[str]:
    return [REST if name == _OTHERS else str(at) for at, name in enumerate(names)]


def _chart(
    asked: RequestedPeriod,
    step: int,
    found: Sequence[Count],
    names: Sequence[str],
    value: Callable[[Count], float],
    label: str,
) -> Markup:
    """One bar per day, or per several days for a minimum bar width."""
    first, last = int(asked.period.since // DAY_S), int((asked.period.until - 1) // DAY_S)
    starts = range(first, last + 1, step)
    heights = {name: [0.0] * len(starts) for name in names}
    for count in found:
        if count.state in FAILED:
            name = count.category if count.category in heights else _OTHERS
            heights[name][(count.day - first) // step] += value(count)
    sums = ", ".join(f"{why(name)} {sum(values):,.4g}" for name, values in heights.items())
    each = "day" if step == 1 else f"{step} days"
    description = f"{label} per {each}, {asked.title}. {sums}"
    shown = {
        why(name): (color, heights[name]) for color, name in zip(_colors(names), names, strict=True)
    }
    return stacks([day_name(day) for day in starts], shown, description)
