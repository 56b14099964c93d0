"""What watching a training concludes: immutable, with a JSON form (``epochzero.watched/1``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from epochzero import taxonomy

SCHEMA = "epochzero.watched/1"
SUSPECTED, CONFIRMED = "suspected", "confirmed"
"""`TrainingFinding.state`: later evidence may retract the first; `fail_on` acts on the second only."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's source."""

    path: str
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class TrainingFinding:
    """One thing that is wrong with a training.

    Attributes:
        word: of the taxonomy: a fault (`taxonomy.faults`) or a symptom (`taxonomy.symptoms`).
        since: iteration from which on it is seen.
        text: what is seen, in a sentence with its numbers.
        layer: path of the layer in its model; empty where it sits in none.
        place: the line that made the layer or set the value; None where no line can be named.
        confidence: 0 to 1.
        fix: what to do, with a value to try.
        evidence: the numbers it rests on.
        series: name of the series of a `History` that shows it; empty for none.
        causes: words of symptoms that this fault brings about: they are listed under it.
        option: of the command line that set the value, as it was given (``--lr 10``); empty for none.
        state: `SUSPECTED` or `CONFIRMED`, see `epochzero.run.watch.confirmation`.
    """

    word: str
    since: int
    text: str
    layer: str = ""
    place: SourceLine | None = None
    confidence: float = 0.5
    fix: str = ""
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    series: str = ""
    causes: tuple[str, ...] = ()
    option: str = ""
    state: str = SUSPECTED

    @property
    def title(self) -> str:
        """The word as the taxonomy has it for people."""
        term = taxonomy.faults().get(self.word) or taxonomy.symptoms().get(self.word)
        return term.title if term else self.word


@dataclass(frozen=True, slots=True)
class WatchResult:
    """The verdict on a training so far.

    Attributes:
        iterations: how many there were.
        root: the fault that explains what is seen; None where nothing is found.
        symptoms: what the root brings about.
        others: findings that the root does not explain, the surest first.
        failed: words whose search failed on this training, with the error: a defect of ours.
    """

    iterations: int
    root: TrainingFinding | None = None
    symptoms: tuple[TrainingFinding, ...] = ()
    others: tuple[TrainingFinding, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[TrainingFinding, ...]:
        """All, the root first."""
        return (*filter(None, (self.root,)), *self.symptoms, *self.others)


def to_dict(watched: WatchResult) -> dict[str, Any]:
    """The JSON form."""
    return {"schema": SCHEMA, **asdict(watched)}


def of_dict(values: Mapping[str, Any]) -> WatchResult:
    """The verdict that a JSON form is of. Fields of a newer version are passed over.

    Raises:
        KeyError, TypeError: a field that there must be is missing.
    """
    root = values["root"]
    return WatchResult(
        int(values["iterations"]),
        _finding(root) if root else None,
        tuple(map(_finding, values["symptoms"])),
        tuple(map(_finding, values["others"])),
    )


def _finding(values: Mapping[str, Any]) -> TrainingFinding:
    known = {f.name: values[f.name] for f in fields(TrainingFinding) if f.name in values}
    known["place"] = SourceLine(**known["place"]) if known.get("place") else None
    known["causes"] = tuple(known.get("causes", ()))
    return TrainingFinding(**known)
