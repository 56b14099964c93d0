"""Agreement of annotators, their disagreements, and the final labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from epochzero.reports.statistics import (
    ClassAgreement,
    ClassScores,
    agreement,
    class_scores,
    confusion,
    fleiss_kappa,
)
from epochzero.study.labelling.items import LabelItem
from epochzero.study.labelling.journal import Labels
from epochzero.study.labelling.scheme import Answers, Question, Scheme


@dataclass(frozen=True, slots=True)
class QuestionAgreement:
    """Agreement of annotators on one question.

    Attributes:
        question: its name.
        records: number of records that at least two annotators answered.
        agreed: number of these on which all their annotators agree.
        pairs: agreement of two annotators, by their names, on what both answered.
        fleiss: Fleiss' kappa of three or more annotators, over ``fleiss_records``; None if it is undefined.
        fleiss_records: number of records that all annotators answered.
        labels: each label that was given, most frequent first, over all pairs; F1 is its positive specific agreement.
        confused: pairs of labels for the same record with their frequency, most frequent first.
    """

    question: str
    records: int
    agreed: int
    pairs: Mapping[tuple[str, str], ClassAgreement]
    fleiss: float | None
    fleiss_records: int
    labels: tuple[ClassScores, ...]
    confused: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class LabelledRecord:
    """A record with the labels of all its annotators.

    Attributes:
        item: the record.
        answers: by question, then annotator.
        notes: by annotator.
    """

    item: LabelItem
    answers: Mapping[str, Answers]
    notes: Mapping[str, str]

    @property
    def differing(self) -> dict[str, Answers]:
        """The answers to questions that annotators answered differently."""
        return {name: given for name, given in self.answers.items() if len({*given.values()}) > 1}

    @property
    def unanimous(self) -> dict[str, str]:
        """The answers that two or more annotators gave, and none of them differently."""
        several = {
            name: {*given.values()} for name, given in self.answers.items() if len(given) > 1
        }
        return {name: words.pop() for name, words in several.items() if len(words) == 1}


def _labelled(
    scheme: Scheme, items: Sequence[LabelItem], annotators: Mapping[str, Labels]
) -> Iterator[LabelledRecord]:
    for item in items:
        answers: dict[str, dict[str, str]] = {}
        notes = {name: labels.notes.get(item.id, "") for name, labels in annotators.items()}
        for name, labels in annotators.items():
            for question, value in scheme.walk(labels.answers.get(item.id, {}))[0].items():
                answers.setdefault(question, {})[name] = value
        yield LabelledRecord(item, answers, {name: text for name, text in notes.items() if text})


def disagreements(
    scheme: Scheme, items: Sequence[LabelItem], annotators: Mapping[str, Labels]
) -> list[LabelledRecord]:
    """Return the records that two annotators answered differently, in file order."""
    return [record for record in _labelled(scheme, items, annotators) if record.differing]


def compare(
    scheme: Scheme, items: Sequence[LabelItem], annotators: Mapping[str, Labels], *, seed: int = 0
) -> tuple[QuestionAgreement, ...]:
    """Compute the agreement on each question that two annotators answered for some record."""
    records = [record.answers for record in _labelled(scheme, items, annotators)]
    found = []
    for question in scheme.questions:
        answers = [record.get(question.name, {}) for record in records]
        if several := [answer for answer in answers if len(answer) > 1]:
            found.append(_of_question(question, several, tuple(annotators), seed))
    return tuple(found)


def _of_question(
    question: Question, answers: Sequence[Answers], names: tuple[str, ...], seed: int
) -> QuestionAgreement:
    words = [choice.name for choice in question.choices]
    pairs, both = {}, np.zeros((len(words), len(words)), np.int64)
    for first, second in combinations(names, 2):
        shared = [answer for answer in answers if first in answer and second in answer]
        if shared:
            left, right = ([answer[name] for answer in shared] for name in (first, second))
            pairs[first, second] = agreement(left, right, seed=seed)
            both += confusion(left, right, words)[1]
    by_all = [[*answer.values()] for answer in answers if len(answer) == len(names) > 2]
    counts = np.array([[given.count(word) for word in words] for given in by_all])
    confused = [
        (words[a], words[b], int(both[a, b] + both[b, a]))
        for a, b in combinations(range(len(words)), 2)
    ]
    labels = sorted(class_scores(words, both), key=lambda label: -label.true - label.predicted)
    return QuestionAgreement(
        question.name,
        records=len(answers),
        agreed=sum(len({*answer.values()}) == 1 for answer in answers),
        pairs=pairs,
        fleiss=fleiss_kappa(counts) if by_all else None,
        fleiss_records=len(by_all),
        labels=tuple(label for label in labels if label.true + label.predicted),
        confused=tuple(sorted((row for row in confused if row[2]), key=lambda row: -row[2])),
    )


def exported(
    scheme: Scheme,
    items: Sequence[LabelItem],
    annotators: Mapping[str, Labels],
    adjudicated: Mapping[str, Labels],
) -> Iterator[dict[str, Any]]:
    """Yield the labeled records, each with its final labels.

    Each has all its fields, ``label`` (value by question), ``label_certainty`` (share of the annotators who gave
    that answer, by question), ``label_from`` (adjudicated, unanimous, majority or single), ``annotators``, and
    ``unresolved``: questions with a tie.

    Raises:
        InputError: a log can no longer be read.
    """
    for record in _labelled(scheme, items, annotators):
        item, answers = record.item, record.answers
        if not answers:
            continue
        decided = _decided(scheme, record, adjudicated)
        majority = {name: _majority(given) for name, given in answers.items()}
        answered = _consistent(scheme, decided or majority)
        names = sorted({name for given in answers.values() for name in given})
        agreed = "majority" if record.differing else "unanimous" if len(names) > 1 else "single"
        yield {
            **item.record,
            **({"log": item.text} if item.logs else {}),
            "label": {
                question.name: word if (value := question.choice(word).value) == "" else value
                for question, word in answered
            },
            "label_certainty": {
                question.name: _share(answers.get(question.name, {}), word)
                for question, word in answered
            },
            "label_from": "adjudicated" if decided else agreed,
            "annotators": names,
            "unresolved": [] if decided else [name for name, word in majority.items() if not word],
        }


def _decided(
    scheme: Scheme, record: LabelledRecord, adjudicated: Mapping[str, Labels]
) -> dict[str, str]:
    """Return the adjudicated answers of a record if they are complete; otherwise nothing."""
    for labels in adjudicated.values():
        if answers := labels.answers.get(record.item.id):
            unanimous = record.unanimous if record.differing else {}
            found, open_question = scheme.walk({**unanimous, **answers})
            if open_question is None:
                return found
    return {}


def _consistent(scheme: Scheme, winners: Answers) -> list[tuple[Question, str]]:
    """Drop answers that earlier ones rule out: each question has a majority of its own."""
    found: dict[str, str] = {}
    for question in scheme.questions:
        word = winners.get(question.name, "")
        if word in (choice.name for choice in question.choices_after(found)):
            found[question.name] = word
    return [(each, found[each.name]) for each in scheme.questions if each.name in found]


def _majority(answers: Answers) -> str:
    """Return the most frequent answer; empty if there is a tie."""
    first, *rest = Counter(answers.values()).most_common(2)
    return "" if rest and rest[0][1] == first[1] else first[0]


def _share(answers: Answers, word: str) -> float | None:
    return round([*answers.values()].count(word) / len(answers), 4) if answers else None
