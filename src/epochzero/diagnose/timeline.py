"""Orders the events of all ranks: the root cause, other candidates and the consequences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from epochzero.diagnose.catalog import Catalog
from epochzero.diagnose.explanation import reason
from epochzero.diagnose.judgment import JudgedEvent, judge
from epochzero.diagnose.root_cause import select_root
from epochzero.diagnose.survival import without_survived
from epochzero.logs.events import LogEvent


@dataclass(frozen=True, slots=True)
class Timeline:
    """The root cause, other candidates, and the consequences."""

    root: JudgedEvent | None
    candidates: tuple[JudgedEvent, ...]
    judged: tuple[JudgedEvent, ...]


def order(
    events: Iterable[LogEvent], catalog: Catalog, *, failed: bool = False, restarts: int = 0
) -> Timeline:
    """Finds the root cause among the events of all logs.

    Args:
        events: of all logs of a job.
        catalog: the signatures.
        failed: whether the job is known to have failed, which lowers the required evidence.
        restarts: number of restarts by the launcher.
    """
    judged = tuple(judge(event, catalog, number) for number, event in enumerate(events))
    judged = without_survived(judged, failed=failed, restarts=restarts)
    root, candidates = select_root(judged, failed=failed)
    return Timeline((root and reason(root, judged)) or root, candidates, judged)
