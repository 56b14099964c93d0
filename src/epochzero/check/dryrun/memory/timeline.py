"""What is allocated over a job's events, by kind: few enough columns to draw and to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from epochzero.check.dryrun.memory.replay import WORKSPACES, kind_of, with_workspaces
from epochzero.check.dryrun.memory.trace import Alloc, Free, Trace

MOST_COLUMNS = 480
NOT_SHOWN = frozenset({*WORKSPACES, "backward done", "empty cache"})
"""Marks that do not help the reader."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A mark of the trace: its name, and the column at which it stands."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """Memory over the events of a trace.

    Attributes:
        columns: each of a few events on end, at the one at which most was allocated: kind -> bytes.
        moments: marks of the trace.
    """

    columns: tuple[Mapping[str, int], ...]
    moments: tuple[Moment, ...]


def timeline(trace: Trace, workspace: int) -> MemoryTimeline:
    """The timeline of a trace, with workspaces of cuBLAS of that many bytes."""
    columns: list[Mapping[str, int]] = []
    moments: list[Moment] = []
    each = -(-len(trace.events) // MOST_COLUMNS) or 1
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    living: dict[int, Alloc] = {}
    for number, event in enumerate(with_workspaces(trace, workspace), 1):
        if isinstance(event, Alloc):
            living[event.storage] = event
            kind = kind_of(trace, event.storage)
            now[kind] = now.get(kind, 0) + event.size
        elif isinstance(event, Free):
            if gone := living.pop(event.storage, None):
                now[kind_of(trace, gone.storage)] -= gone.size
        elif event.name not in NOT_SHOWN:
            moments.append(Moment(event.name, len(columns)))
        if sum(now.values()) >= sum(most.values()):
            most = dict(now)
        if number % each == 0:
            columns.append(most)
            most = dict(now)
    return MemoryTimeline((*columns, dict(now)), tuple(moments))
