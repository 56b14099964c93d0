"""Rows of the tables of faults and symptoms: what looks for a sign, and what is reported where it is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import SourceLine, TrainingFinding


@dataclass(frozen=True, slots=True)
class Sign:
    """What shows a fault or a symptom in one training.

    Attributes:
        text: a sentence with its numbers.
        place: the line of the event, or that made the layer or the value.
        since: the first iteration.
        layer: path of the layer; empty where it is in none.
        evidence: numbers by their names.
        weaker: what to take off the confidence.
    """

    text: str
    place: SourceLine | None = None
    since: int = 0
    layer: str = ""
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    weaker: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        word: a fault or symptom of the taxonomy.
        sign: looks for it in a history; None where it is absent or unknown.
        confidence: of the finding.
        fix: what to do.
        series: curve of the page that shows it.
    """

    word: str
    sign: Callable[[TrainingHistory], Sign | None]
    confidence: float
    fix: str = ""
    series: str = ""

    def find(self, history: TrainingHistory) -> Iterator[TrainingFinding]:
        """The finding, if there is one."""
        sign = self.sign(history)
        if sign is not None:
            yield TrainingFinding(
                self.word,
                sign.since,
                sign.text,
                layer=sign.layer,
                place=sign.place,
                confidence=self.confidence - sign.weaker,
                fix=self.fix,
                evidence=sign.evidence,
                series=self.series,
            )
