"""Uses of an empty list of files that certainly fail: its first item, its maximum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from epochzero.check.program.events import Event, LibraryCall, Lookup, Situation
from epochzero.check.program.model import Program
from epochzero.check.program.values import Value

_SAME = re.compile(r"builtins\.(sorted|list|tuple|reversed)$|natsort\.natsorted$")
"""Functions that return a list with the same items."""
_REFUSED = {
    "builtins.max": "ValueError: max() arg is an empty sequence",
    "builtins.min": "ValueError: min() arg is an empty sequence",
    "builtins.next": "StopIteration",
    "random.choice": "IndexError: Cannot choose from an empty sequence",
    "numpy.random.choice": "ValueError: 'a' cannot be empty unless no samples are taken",
}
"""Functions that reject an empty sequence, and their errors."""
_ASKS = re.compile(r"\b(if|while|assert|try|len|any|exists?)\b")
_INDEX = re.compile(r"-?\d+")


def failing_use(program: Program, found: LibraryCall) -> tuple[Situation, str] | None:
    """Where an empty list makes the program fail, and the error; None if no failure is known.

    Args:
        program: program of the job.
        found: call that returns the list.
    """
    empty: list[Value] = [found.result]
    for event in _after(program, found):
        if isinstance(event, LibraryCall) and _SAME.match(event.name) and _is_given(event, empty):
            empty.append(event.result)
        if (error := _error(event, empty)) and not _asked(program, found.at, event.at):
            return event.at, error
    return None


def _after(program: Program, found: LibraryCall) -> Iterator[Event]:
    events = iter(program.events)
    for event in events:
        if event is found:
            break
    return events


def _is_given(call: LibraryCall, empty: list[Value]) -> bool:
    return bool(call.arguments) and call.arguments[0] in empty


def _error(event: Event, empty: list[Value]) -> str:
    """The error of the event; empty if it does not fail because of missing items."""
    if not event.at.certain or event.at.handled:
        return ""
    if isinstance(event, Lookup) and event.item and not event.stored and event.on in empty:
        return "IndexError: list index out of range" if _INDEX.fullmatch(event.name) else ""
    if isinstance(event, LibraryCall) and _is_given(event, empty):
        other = len(event.arguments) > 1 or "default" in event.keywords
        return "" if other else _REFUSED.get(event.name, "")
    return ""


def _asked(program: Program, found: Situation, use: Situation) -> bool:
    """Whether the program may check for items in between, as far as its lines show."""
    if use.place.path != found.place.path or use.place.line < found.place.line:
        return True
    module = program.by_path.get(use.place.path)
    between = module.lines[found.place.line - 1 : use.place.line] if module else ()
    return any(_ASKS.search(line) for line in between)
