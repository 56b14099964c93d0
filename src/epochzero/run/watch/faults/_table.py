"""Rows of the tables of faults and symptoms: what looks for a sign, and what is reported where it is seen.

There are four shapes of searches. A function of the history reads a curve, a setting or a state. `in_cycles` and `in_iterations`
make such a function of a relation that is tested in each cycle of calls or in each inspected iteration. `in_experiments` makes
one of a fact that every experiment on the running model must have shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from epochzero.run.watch.history import Cycle, Iteration, Record, TrainingHistory
from epochzero.run.watch.model import EvidenceKind, SourceLine, TrainingFinding

LEAST = 2
"""Moments that violate a relation before it is reported: the first may be a warm-up."""
SHARE = 0.8
"""Of the moments to which a relation applies; an exception, such as the last batch of an epoch, does not hide the rule."""
ONSET, SHARE_OF_ONSET = 6, 0.1
"""Moments in a row until now, and their share, that violate a relation that held before."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What shows a fault or a symptom in one training.

    Attributes:
        text: a sentence with its numbers.
        place: the line of the event, or that made the layer or the value.
        since: the first iteration.
        layer: path of the layer; empty where it is in none.
        evidence: numbers by their names.
        confidence: of this sign, if it is not that of its row.
        weaker: what to take off the confidence.
        fix: what to do, if it depends on the numbers.
    """

    text: str
    place: SourceLine | None = None
    since: int = 0
    layer: str = ""
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    confidence: float | None = None
    weaker: float = 0.0
    fix: str = ""


Signs = Sign | Iterable[Sign] | None
"""What a search returns: one sign, several, or None where the fault is absent or unknown."""
Search = Callable[[TrainingHistory], Signs]
Test = Sign | bool | None
"""Of one moment: the violation of a relation; True where the relation holds, None where it does not apply."""
_Moment = TypeVar("_Moment", Cycle, Iteration)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        word: a fault or symptom of the taxonomy.
        search: for signs of it in a history.
        confidence: of the finding.
        fix: what to do.
        series: curve of the page that shows it.
        kind: of its evidence.
    """

    word: str
    search: Search
    confidence: float
    fix: str = ""
    series: str = ""
    kind: EvidenceKind = EvidenceKind.FACT

    def find(self, history: TrainingHistory) -> Iterator[TrainingFinding]:
        """The findings, if there are any."""
        signs = self.search(history)
        for sign in (signs,) if isinstance(signs, Sign) else signs or ():
            yield TrainingFinding(
                self.word,
                sign.since,
                sign.text,
                layer=sign.layer,
                place=sign.place,
                confidence=(sign.confidence or self.confidence) - sign.weaker,
                fix=sign.fix or self.fix,
                evidence=sign.evidence,
                series=self.series,
                kind=self.kind,
            )


def in_cycles(test: Callable[[TrainingHistory, Cycle], Test]) -> Search:
    """The search for a relation between the calls of a cycle."""
    return lambda history: _lasting(history, history.cycles, test)


def in_iterations(test: Callable[[TrainingHistory, Iteration], Test], least: int = LEAST) -> Search:
    """The search for a relation within an inspected iteration that is violated at least so often."""
    return lambda history: _lasting(history, history.iterations, test, least)


def _lasting(
    history: TrainingHistory,
    moments: Sequence[_Moment],
    test: Callable[[TrainingHistory, _Moment], Test],
    least: int = LEAST,
) -> Sign | None:
    """The first violation, if most moments to which a relation applies violate it."""
    found = [(m, answer) for m in moments if (answer := test(history, m)) is not None]
    violated = [(moment, answer) for moment, answer in found if isinstance(answer, Sign)]
    since = ""
    if len(violated) < max(least, SHARE * len(found)):
        # What held at first, and is violated from some moment on.
        held = max((n for n, (_, a) in enumerate(found) if not isinstance(a, Sign)), default=-1)
        after = len(found) - 1 - held if held >= 0 else 0
        violated = violated[len(violated) - after :]
        if len(violated) < max(least, ONSET, SHARE_OF_ONSET * len(found)):
            return None
        since = f"From iteration {violated[0][0].number} on: "
    moment, first = violated[0]
    return replace(first, text=since + first.text, since=moment.number)


def in_experiments(
    name: str, sign: Callable[[TrainingHistory, Record], Sign | None], share: float = 1.0
) -> Search:
    """The search for a fact that every experiment has shown, or this share of them, at the same line."""

    def found(history: TrainingHistory) -> Sign | None:
        computed = _computed(history)
        all_facts = [
            found for of in computed if (found := [f for f in of["facts"] if f["name"] == name])
        ]
        if not all_facts or len(all_facts) < share * len(computed):
            return None
        first, places = all_facts[0][0], {str(facts[0].get("place")) for facts in all_facts}
        return sign(history, first) if len(places) == 1 else None

    return found


def _computed(history: TrainingHistory) -> Sequence[Record]:
    """Experiments on examples, targets and parameters that could be computed."""
    return [
        of
        for of in history.experiments
        if not of.get("problem") and not any(f["name"] == "step" for f in of["facts"])
    ]


def percent(share: float) -> str:
    """A share with the digits that it needs: ``35%``, ``0.4%``, ``2e-05%``; ``0%`` is exactly nothing."""
    size = abs(share) * 100
    if size == 0 or size >= 10:
        return f"{share:.0%}"
    return f"{share * 100:.2g}%" if size >= 1 else f"{share * 100:.1g}%"
