"""What watching a training concludes: immutable, with a JSON form (``epochzero.watched/1``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from epochzero import taxonomy

SCHEMA = "epochzero.watched/1"
SUSPECTED, CONFIRMED = "suspected", "confirmed"
"""`TrainingFinding.state`: later evidence may retract the first; `fail_on` acts on the second only."""


TOLD = 0.5
"""A finding of less confidence is a note of the verdict: neither a suspect, nor reported while the job runs."""


class EvidenceKind(StrEnum):
    """Kinds of evidence. Those of `PROOFS` make a fault a root cause; the others make it a suspect."""

    FACT = "fact"
    """Seen on the running training: an experiment on its model, or what its calls, tensors and settings must keep and do not."""
    SOURCE = "source"
    """Read in the program's text. Whether the line counts for what is trained is not known."""
    STATE = "state"
    """Which tensors, layers or examples are the same, stay or are never used. A second model of the process may look like it."""
    EFFECT = "effect"
    """A value that is unusual, or a cause that would keep a model from learning, in a training that comes to harm."""
    ESTIMATE = "estimate"
    """What curves and samples make likely."""


PROOFS = frozenset({EvidenceKind.FACT})
_COMPARE = "Change only this, and compare the loss after the same number of iterations."
_PROVED_BY = {
    EvidenceKind.SOURCE: "Check that this line contributes to what the training minimizes.",
    EvidenceKind.STATE: "Check that the named layer or parameter belongs to the trained model and that its state is not intended.",
}


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
        kind: of its evidence.
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
    kind: EvidenceKind = EvidenceKind.FACT

    @property
    def title(self) -> str:
        """The word as the taxonomy has it for people."""
        term = taxonomy.faults().get(self.word) or taxonomy.symptoms().get(self.word)
        return term.title if term else self.word

    @property
    def proved_by(self) -> str:
        """What would show that a suspicion is right."""
        return _PROVED_BY.get(self.kind, _COMPARE)


@dataclass(frozen=True, slots=True)
class WatchResult:
    """The verdict on a training so far.

    Attributes:
        iterations: how many there were.
        root: the fault that explains what is seen; None where none is proved.
        symptoms: what the root, or the suspect, brings about.
        others: findings that this does not explain, the surest first.
        failed: words whose search failed on this training, with the error: a defect of ours.
    """

    iterations: int
    root: TrainingFinding | None = None
    symptoms: tuple[TrainingFinding, ...] = ()
    others: tuple[TrainingFinding, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def suspect(self) -> TrainingFinding | None:
        """Of a training without a root, the fault with the strongest signs that is not proved."""
        if self.root is not None:
            return None
        strong = (finding for finding in self.others if finding.confidence >= TOLD)
        return next((finding for finding in strong if finding.word in taxonomy.faults()), None)

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
    known["kind"] = EvidenceKind(known.get("kind", EvidenceKind.FACT))
    return TrainingFinding(**known)
