"""Two periods side by side: what fails more, what fails less, what came and what went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query, Request, Response

from epochzero.store.overview import counts
from epochzero.web.access import Reads
from epochzero.web.pages.overview import Totals, by_category, totals
from epochzero.web.pages.period import asked_period
from epochzero.web.pages.shown import Export, Format, Step, page, pages_router, table, why
from epochzero.web.state import Store

__all__ = ["Change", "router"]

router = pages_router()

_COLUMNS = ("category", "failed_before", "failed_now", "gpu_hours_before", "gpu_hours_now")


@dataclass(frozen=True, slots=True)
class Change:
    """A category in both periods."""

    category: str
    before: int
    now: int
    hours_before: float
    hours_now: float

    @property
    def more(self) -> int:
        """How many jobs more failed so."""
        return self.now - self.before


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
    """A period beside another one: by default as long a one just before."""
    asked = asked_period(days, since, until, default=7)
    other = asked_period(None, other_since, other_until) if other_since else asked.before
    now, before = (counts(store, viewer.team, one.period) for one in (asked, other))
    changes = _changes(by_category(before), by_category(now))
    if format != "html":
        rows = [(one.category, one.before, one.now, one.hours_before, one.hours_now)
                for one in changes]  # fmt: skip
        return table(format, Export("compare", _COLUMNS, rows))
    return page(
        request, viewer, "compare",
        title="Compare two periods",
        now=_now(changes),
        asked=asked,
        other=other,
        sums=totals(now),
        sums_before=totals(before),
        changes=changes,
    )  # fmt: skip


def _changes(before: dict[str, Totals], now: dict[str, Totals]) -> Sequence[Change]:
    """Every category of either, what changed most first."""
    none = totals(())
    found = []
    for category in before.keys() | now.keys():
        old, new = before.get(category, none), now.get(category, none)
        found.append(Change(category, old.failed, new.failed, old.lost, new.lost))
    return sorted(found, key=lambda one: (-abs(one.more), one.category))


def _now(changes: Sequence[Change]) -> Sequence[Step]:
    worse = [one for one in changes if one.more > 0]
    if worse:
        most = max(worse, key=lambda one: one.more)
        text = f"{why(most.category)} grew most, from {most.before:,} to {most.now:,} jobs. Look at what is new in it."
        return (Step(text, link=f"/failures?category={most.category}&new=1"),)
    if changes:
        return (Step("No category grew. Look at what still fails most.", link="/failures"),)
    return (Step("Nothing failed in either. Choose longer periods."),)
