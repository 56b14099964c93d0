"""Compares two periods: categories that increased or decreased, new and vanished failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from epochzero.store.overview import counts, fingerprints
from epochzero.web.access import Reads
from epochzero.web.exports import Export, table
from epochzero.web.pages.overview import Totals, by_category, totals
from epochzero.web.pages.period import RequestedPeriod, asked_period
from epochzero.web.pages.responses import Action, Format, page, pages_router, why
from epochzero.web.state import Store

router = pages_router()

_MOST_SHOWN = 8
_COLUMNS = ("category", "failed_before", "failed_now", "gpu_hours_before", "gpu_hours_now")


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """A category in both periods.

    Attributes:
        more: number of additional jobs compared with the scaled earlier period.
    """

    category: str
    before: int
    now: int
    hours_before: float
    hours_now: float
    more: float


@router.get("/compare", response_model=None)
def compare(
    request: Request,
    viewer: Reads,
    store: Store,
    days: Annotated[int | None, Query(ge=1, le=3650)] = None,
    since: str = "",
    until: str = "",
    other_since: str = "",
    other_until: str = "",
    format: Format = "html",
) -> Response:
    """Compares a period with another, by default the preceding period of the same length."""
    asked = asked_period(days, since, until, default=7)
    other = asked_period(None, other_since, other_until) if other_since else asked.before
    now, before = (counts(store, viewer.team, period.period) for period in (asked, other))
    changes = _changes(by_category(before), by_category(now), asked.length / other.length)
    if format != "html":
        rows = [(change.category, change.before, change.now, change.hours_before, change.hours_now)
                for change in changes]  # fmt: skip
        return table(format, Export("compare", _COLUMNS, rows))
    came, went = (
        fingerprints(store, viewer.team, first.period, but_not_in=second.period, limit=_MOST_SHOWN)
        for first, second in ((asked, other), (other, asked))
    )
    return page(
        request, viewer, "compare",
        title="Compare two periods",
        now=_now(asked, changes),
        asked=asked,
        other=other,
        sums=totals(now),
        sums_before=totals(before),
        changes=changes,
        came=came,
        went=went,
    )  # fmt: skip


def _changes(
    before: dict[str, Totals], now: dict[str, Totals], scale: float
) -> Sequence[CategoryChange]:
    """All categories of both periods, largest change first.

    Args:
        before, now: the sums of both periods.
        scale: length of the second period relative to the first.
    """
    none = totals(())
    found = []
    for category in before.keys() | now.keys():
        old, new = before.get(category, none), now.get(category, none)
        more = new.failed - scale * old.failed
        found.append(CategoryChange(category, old.failed, new.failed, old.lost, new.lost, more))
    return sorted(found, key=lambda change: (-abs(change.more), change.category))


def _now(asked: RequestedPeriod, changes: Sequence[CategoryChange]) -> Sequence[Action]:
    period = {"since": asked.first, "until": asked.last}
    worse = [change for change in changes if change.more > 0]
    if worse:
        most = max(worse, key=lambda change: change.more)
        text = f"{why(most.category)} grew most, from {most.before:,} to {most.now:,} jobs. Review its failures."
        return (Action(text, link=f"/failures?{urlencode({'category': most.category} | period)}"),)
    if changes:
        text = "No category grew. Review the most frequent failures."
        return (Action(text, link=f"/failures?{urlencode(period)}"),)
    return (Action("No job failed in either period. Choose longer periods."),)
