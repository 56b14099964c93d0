"""Page of targets: results of jobs per target, and differences between two targets, hosts or jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Request, Response

from epochzero.number_formats import counted
from epochzero.store.differences import (
    EnvironmentDifference,
    JobEnvironment,
    differing,
    environment,
    target_counts,
)
from epochzero.web.access import Reads
from epochzero.web.exports import Export, table
from epochzero.web.pages.period import asked_period
from epochzero.web.pages.responses import Action, Format, page, pages_router
from epochzero.web.state import Store

router = pages_router()

_COLUMNS = ("target", "jobs", "failed", "gpu_hours_lost", "last")
_OF_DIFFERENCE = ("kind", "name", "left", "right", "is_major")
Word = Annotated[str, Query(max_length=200)]


@router.get("/targets", response_model=None)
def targets(
    request: Request,
    viewer: Reads,
    store: Store,
    days: Annotated[int | None, Query(ge=1, le=3650)] = None,
    since: str = "",
    until: str = "",
    left: Word = "",
    right: Word = "",
    format: Format = "html",
) -> Response:
    """Shows the targets of a period, or the differences between two environments."""
    asked = asked_period(days, since, until)
    pair: tuple[JobEnvironment, JobEnvironment] | None = None
    found: Sequence[EnvironmentDifference] = ()
    if left and right:
        pair = environment(store, viewer.team, left), environment(store, viewer.team, right)
        found = differing(*pair)
    # With two environments, only their differences are computed: the totals of a period are more expensive.
    known = () if pair else target_counts(store, viewer.team, asked.period)
    if format != "html":
        if pair:
            rows = [tuple(getattr(d, name) for name in _OF_DIFFERENCE) for d in found]
            return table(format, Export("differences", _OF_DIFFERENCE, rows))
        rows = [tuple(getattr(count, name) for name in _COLUMNS) for count in known]
        return table(format, Export("targets", _COLUMNS, rows))
    return page(
        request, viewer, "targets",
        title="Targets and their differences" if not pair else f"{pair[0].name} and {pair[1].name}",
        now=_now(pair, found),
        asked=asked,
        known=known,
        pair=pair,
        found=found,
        left=left,
        right=right,
    )  # fmt: skip


def _now(
    pair: tuple[JobEnvironment, JobEnvironment] | None, found: Sequence[EnvironmentDifference]
) -> Sequence[Action]:
    if pair is None:
        return (
            Action("To compare two environments, enter them below as job:ID, target:NAME or host:NAME."),
            Action("Describe a platform, and check jobs against it before you submit them.",
                 command="epochzero target capture -o cluster.toml\n"
                 "epochzero check --target cluster.toml -- python train.py"),
        )  # fmt: skip
    major = [difference for difference in found if difference.is_major]
    if major:
        text = f"Review the {counted(len(major), 'marked difference')} first: these most often cause failures."
        return (Action(text),)
    if found:
        return (
            Action(
                "None of the differences often causes failures. Look for the cause in code or data."
            ),
        )
    return (Action("The environments are the same. Look for the cause in code, data or hardware."),)
