"""Finds the lines that choose the restored state, overwrite loaded weights, or repeat a batch."""

from __future__ import annotations

import ast
import re

from epochzero.run.watch.lines.program import argument, last_name, parsed
from epochzero.run.watch.model import SourceLine

_CHOICES = ("greater_is_better", "mode", "monitor", "metric_for_best_model")
_INITIALIZES = re.compile(r"init|reset_parameters|^apply$")


def choice_place(place: SourceLine | None) -> SourceLine | None:
    """Return the setting that defines the best state, or else a comparison with the best so far, or else the given line."""
    program = parsed(place.path) if place else None
    if program is None:
        return place
    for keyword in _CHOICES:
        for call in program.all_calls:
            if (value := argument(call, keyword)) is not None:
                return program.place(value)
    tests = [node.test for node in program.nodes if isinstance(node, ast.If)]
    bests = (t for t in tests if isinstance(t, ast.Compare) and "best" in ast.unparse(t).lower())
    node = next(bests, None)
    return program.place(node) if node else place


def overwriting_place(place: SourceLine | None) -> SourceLine | None:
    """Return the first line after a load that initializes weights, or else the given line."""
    program = parsed(place.path) if place else None
    calls = [
        call
        for call in (program.all_calls if program and place else ())
        if place and call.lineno > place.line and _INITIALIZES.search(last_name(call.func))
    ]
    first = min(calls, key=lambda call: call.lineno, default=None)
    return program.place(first) if program and first else place


def repeating_place(place: SourceLine | None) -> SourceLine | None:
    """Return the line that takes the first batch of a new iterator, or else the given line."""
    program = parsed(place.path) if place else None
    for call in program.all_calls if program else ():
        inner = call.args[0] if call.args else None
        if last_name(call) == "next" and isinstance(inner, ast.Call) and last_name(inner) == "iter":
            return program.place(call) if program else place
    return place
