"""All ranks' events in order: which one is the first cause, and what followed from it.

Every event is judged on its own (what signature it carries, what role that gives it, how strongly
it claims to be a cause). Then, for each process, the first failure of its last burst of failures is
taken: earlier ones were survived, since the process went on. Among processes the earliest wins, by
time where times are known and by structure where not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from epochzero.diagnose.catalog import Catalog, Match
from epochzero.diagnose.reading import read
from epochzero.logs.events import Event

__all__ = ["Judged", "Timeline", "order"]

BURST_LINES = 60
"""Failures of one process that are at most so many lines apart belong to one burst."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Judged:
    """An event with what it was found to be.

    Attributes:
        event: the event.
        match: the best signature; None when none fits.
        role: a signature's role, or "recovered" when the job went on afterwards.
        category: from the signature or the general reading; empty when neither tells.
        claim: how strongly the event claims to be a cause; 0 is no claim.
        order: position in the order of reading.
    """

    event: Event
    match: Match | None
    role: str
    category: str
    claim: int
    order: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Root, what else claims to be a cause, and what followed."""

    root: Judged | None
    candidates: tuple[Judged, ...]
    judged: tuple[Judged, ...]


EXCEPTION, FATAL_LINE, ERROR_LINE, BARE_EXCEPTION, PLAIN_LINE, WEAK = 6, 5, 4, 3, 2, 1

_BARE_EXCEPTION = re.compile(
    r"^(?:E {3,}|\W{0,6})(?:[\w.]+: )?[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::|\(|$)"
)
_ERROR_LINE = re.compile(
    r"(?:^|[\s\]:|*])(?:fatal error|fatal|error|ERROR|Error|FATAL|FAILED|panic|Killed|Aborted)\b ?(?:\([^)]*\))?[:\]!]"
    r"|^(?:Segmentation fault|Aborted|Killed|Bus error|Illegal instruction)"
)
_QUIET = frozenset({"DEBUG", "INFO", "WARNING"})


def order(events: Iterable[Event], catalog: Catalog) -> Timeline:
    """Finds the first cause among the events of all logs."""
    judged = tuple(_judge(event, catalog, number) for number, event in enumerate(events))
    candidates = tuple(j for j in judged if j.role == "cause" and j.claim)
    if not candidates:
        fallback = [j for j in judged if j.role in ("cascade", "wrapper") and j.category]
        return Timeline(fallback[0] if fallback else None, (), judged)
    roots = [_root_of_process(stream) for stream in _by_process(candidates)]
    return Timeline(_first(roots), candidates, judged)


def _judge(event: Event, catalog: Catalog, number: int) -> Judged:
    numbers = {n for anchor in event.anchors for n in catalog.anchors[anchor]}
    match = next(catalog.matches(event.text, event.block, numbers), None) if numbers else None
    role = match.signature.role if match else "cause"
    category = match.signature.category if match else ""
    if role == "cause" and _recovered(event):
        role = "recovered"
    claim = _claim(event, match) if role == "cause" else 0
    if claim and not category:
        category = read(event.type, event.message)
        if event.kind == "line" and not category and claim <= PLAIN_LINE:
            claim = 0
    return Judged(event, match, role, category, claim, number)


def _claim(event: Event, match: Match | None) -> int:
    if event.kind == "exception":
        return ERROR_LINE if event.type == "Fatal Python error" else EXCEPTION
    if event.level == "FATAL":
        return FATAL_LINE
    raised = _BARE_EXCEPTION.match(event.message)
    if event.level in _QUIET:
        return WEAK if match or raised else 0
    if match:
        return ERROR_LINE
    if raised:
        return BARE_EXCEPTION
    return PLAIN_LINE if event.level == "ERROR" or _ERROR_LINE.search(event.message) else WEAK


def _recovered(event: Event) -> bool:
    """Whether the job went on after the event."""
    return event.progressed_later or len(event.progress) >= 3


def _by_process(candidates: Sequence[Judged]) -> list[list[Judged]]:
    streams: dict[tuple[str, int | None, str | None], list[Judged]] = {}
    for judged in candidates:
        event = judged.event
        streams.setdefault((event.log, event.rank, event.process), []).append(judged)
    return list(streams.values())


def _root_of_process(stream: Sequence[Judged]) -> Judged:
    """The first failure of the last burst of the strongest kind."""
    strongest = max(j.claim for j in stream)
    strong = [j for j in stream if j.claim == strongest]
    first = last = strong[-1]
    for judged in reversed(strong[:-1]):
        same_trace = judged.event.trace == last.event.trace != -1
        if not same_trace and last.event.line - judged.event.line > BURST_LINES:
            break
        first = last = judged
    return _root_of_chain(first, [j for j in strong if j.event.trace == first.event.trace])


def _root_of_chain(first: Judged, chain: Sequence[Judged]) -> Judged:
    """Within one traceback: the innermost of nested exceptions, else the first of the chain."""
    if first.event.trace == -1:
        return first
    root = chain[0]
    for judged in chain[1:]:
        if judged.event.link == "inner":
            root = judged
        else:
            break
    return root


def _first(roots: Sequence[Judged]) -> Judged:
    """The earliest among the roots of all processes."""
    strongest = max(j.claim for j in roots)
    strong = [j for j in roots if j.claim == strongest]
    if all(j.event.time is not None for j in strong):
        return min(strong, key=lambda j: (_clock(j, strong), j.order))
    return strong[0]


def _clock(judged: Judged, among: Sequence[Judged]) -> float:
    """Time of an event; of day only, where some of the events lack a date."""
    time = judged.event.time or 0.0
    dated = all((j.event.time or 0.0) > DAY for j in among)
    return time if dated else time % DAY
