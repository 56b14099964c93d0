"""How what is wrong with a training is shown: a line while it runs, a few about the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.cli import layout

if TYPE_CHECKING:
    from epochzero.run.watch.live import News
    from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult


_MOST_SYMPTOMS = 4
_MOST_OTHERS = 3


def found(news: News) -> Iterator[str]:
    """A line about a new finding, and one about its symptoms."""
    finding = news.finding
    if not news.known:
        where = f" ({_where(finding)})" if _where(finding) else ""
        yield f"{finding.state} since iteration {finding.since}: {finding.title}{where}"
    if news.symptoms:
        titles = ", ".join(symptom.title for symptom in news.symptoms)
        if news.known:
            count = layout.counted(len(news.symptoms), "more symptom")
            yield f'{count} of "{finding.title}": {titles}'
        else:
            yield f"and {layout.counted(len(news.symptoms), 'symptom')} of it: {titles}"


def verdict(watched: WatchResult) -> Iterator[str]:
    """The root, or what is suspected; symptoms under it, and what it does not explain."""
    from epochzero.run.watch.model import SUSPECTED

    root, suspect = watched.root, watched.suspect
    if root is not None:
        # A root that may still be retracted is proved all the same, and not "suspected" as what follows.
        state = "" if root.state == SUSPECTED else f"{root.state}, "
        sure = f" ({state}confidence {root.confidence:.0%})"
        yield layout.wrapped("Training", f"{root.title}, {root.word}{sure}", fg="red")
        yield from _explained(root)
    else:
        found = "is proved" if watched.others else "found"
        text = f"no fault {found} in {layout.counted(watched.iterations, 'iteration')}"
        yield layout.field("Training", text)
    if suspect is not None:
        yield layout.wrapped("Suspected", f"{suspect.title}, {suspect.word}")
        yield from _explained(suspect)
        yield layout.wrapped("Proof", suspect.proved_by)
    yield from layout.listed("Brings", map(_brief, watched.symptoms[:_MOST_SYMPTOMS]))
    others = [other for other in watched.others if other is not suspect]
    yield from layout.listed("Also", map(_brief, others[:_MOST_OTHERS]))


def nothing(why: str) -> str:
    """One line where nothing was watched."""
    return layout.wrapped("Training", f"nothing was watched: {why}")


def _explained(finding: TrainingFinding) -> Iterator[str]:
    """What is observed, where, and what to change."""
    yield layout.wrapped("", finding.text)
    if finding.layer:
        yield layout.field("Layer", finding.layer)
    if finding.place is not None:
        yield layout.field("Line", _line(finding.place))
        if finding.place.text:
            yield layout.wrapped("", finding.place.text, fg="red")
    if finding.option:
        yield layout.field("Option", finding.option)
    if finding.fix:
        yield layout.wrapped("Fix", finding.fix)


def _brief(finding: TrainingFinding) -> str:
    where = _where(finding)
    return f"{finding.title} ({', '.join(filter(None, (finding.state, where)))}): {finding.text}"


def _where(finding: TrainingFinding) -> str:
    place = _line(finding.place) if finding.place else ""
    return ", ".join(filter(None, (finding.layer, place, finding.option)))


def _line(place: SourceLine) -> str:
    """A file in the current folder by its name there."""
    path = Path(place.path)
    with suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return f"{path}:{place.line}"
