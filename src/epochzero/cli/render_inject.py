"""The final report of ``epochzero run --inject``: which faults occurred, and whether the job survived each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epochzero.cli import layout
from epochzero.run.inject.outcome import InjectionOutcome

_WORDS = {
    "survived": "survived",
    "no_effect": "no effect",
    "starts_again": "terminated, for a restart",
    "lost": "not survived",
    "not_reached": "did not occur",
    "not_possible": "could not be injected",
}


def lines(outcomes: Sequence[InjectionOutcome]) -> Iterator[str]:
    """Yield each fault with its verdict, and the explanation below it."""
    for number, outcome in enumerate(outcomes):
        head = f"{outcome.fault}: {_WORDS[outcome.verdict]}"
        yield layout.wrapped("Injected" if number == 0 else "", head)
        yield layout.wrapped("", outcome.text)
