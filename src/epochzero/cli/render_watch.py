"""How what is wrong with a training is shown: a line while it runs, a few about the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero import taxonomy
from epochzero.cli import layout

if TYPE_CHECKING:
    from epochzero.run.watch.model import Finding, Place, Watched

__all__ = ["found", "nothing", "verdict"]

_MOST_SYMPTOMS = 4
_MOST_OTHERS = 3


def found(finding: Finding) -> str:
    """One line about a new finding."""
    where = f" ({_where(finding)})" if _where(finding) else ""
    return f"since iteration {finding.since}: {_title(finding)}{where}"


def verdict(watched: Watched) -> Iterator[str]:
    """The root, its symptoms under it, and what it does not explain."""
    root = watched.root
    if root is None and not watched.others:
        text = f"no fault found in {layout.counted(watched.iterations, 'iteration')}"
        yield layout.field("Training", text)
        return
    if root is not None:
        sure = f" (confidence {root.confidence:.0%})"
        yield layout.wrapped("Training", f"{_title(root)}, {root.word}{sure}", fg="red")
        yield layout.wrapped("", root.text)
        yield from _places(root)
        if root.fix:
            yield layout.wrapped("Fix", root.fix)
        for number, symptom in enumerate(watched.symptoms[:_MOST_SYMPTOMS]):
            yield layout.wrapped("Brings" if number == 0 else "", _brief(symptom))
    label = "Also" if root is not None else "Training"
    for number, other in enumerate(watched.others[:_MOST_OTHERS]):
        yield layout.wrapped(label if number == 0 else "", _brief(other))


def nothing(why: str) -> str:
    """One line where nothing was watched."""
    return layout.wrapped("Training", f"nothing was watched: {why}")


def _places(finding: Finding) -> Iterator[str]:
    if finding.layer:
        yield layout.field("Layer", finding.layer)
    if finding.place is not None:
        yield layout.field("Line", _line(finding.place))
        if finding.place.text:
            yield layout.wrapped("", finding.place.text, fg="red")


def _brief(finding: Finding) -> str:
    where = _where(finding)
    return f"{_title(finding)}{f' ({where})' if where else ''}: {finding.text}"


def _where(finding: Finding) -> str:
    place = _line(finding.place) if finding.place else ""
    return ", ".join(filter(None, (finding.layer, place)))


def _line(place: Place) -> str:
    """A file in the current folder by its name there."""
    path = Path(place.path)
    with suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return f"{path}:{place.line}"


def _title(finding: Finding) -> str:
    term = taxonomy.faults().get(finding.word) or taxonomy.symptoms().get(finding.word)
    return term.title if term else finding.word
