"""Agreement of annotators, their disagreements, and the final labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from epochzero.reports.statistics import Agreement, agreement, confusion, fleiss_kappa
from epochzero.study.labelling.items import Item
from epochzero.study.labelling.journal import Labels
from epochzero.study.labelling.scheme import Answers, Question, Scheme


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of two annotators on what both answered."""

    first: str
    second: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label: its frequency in pairs of answers, and how often both annotators gave it.

    Attributes:
        name: of the choice.
        given: number of answers with this label, over all pairs of annotators.
        share: positive specific agreement: twice the number of pairs in which both gave it, divided by ``given``.
    """

    name: str
    given: int
    share: float


@dataclass(frozen=True, slots=True)
class QuestionAgreement:
    """Agreement of annotators on one question.

    Attributes:
        question: its name.
        records: number of records that at least two annotators answered.
        agreed: number of these on which all their annotators agree.
        pairs: of annotators.
        fleiss: Fleiss' kappa of three or more annotators, over ``fleiss_records``; None if it is undefined.
        fleiss_records: number of records that all annotators answered.
        labels: each label that was given, most frequent first.
        confused: pairs of labels for the same record with their frequency, most frequent first.
    """

    question: str
    records: int
    agreed: int
    pairs: tuple[PairAgreement, ...]
    fleiss: float | None
    fleiss_records: int
    labels: tuple[LabelAgreement, ...]
    confused: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A record on which annotators disagree.

    Attributes:
        item: the record.
        answers: answers by question, then annotator; only questions with different answers.
        notes: by annotator.
        unanimous: answers that all annotators gave.
        all_answers: like ``answers``, for all questions.
    """

    item: Item
    answers: Mapping[str, Mapping[str, str]]
    notes: Mapping[str, str]
    unanimous: Answers
    all_answers: Mapping[str, Mapping[str, str]]


def compare(
    scheme: Scheme, items: Sequence[Item], annotators: Mapping[str, Labels], *, seed: int = 0
) -> tuple[QuestionAgreement, ...]:
    """Compute the agreement on each question that two annotators answered for some record.

    Args:
        scheme: the questions.
        items: the records.
        annotators: their labels, by name.
        seed: of the bootstrap.
    """
    answers = [_answers(scheme, item, annotators) for item in items]
    found = (
        _of_question(question, answers, tuple(annotators), seed) for question in scheme.questions
    )
    return tuple(each_agreement for each_agreement in found if each_agreement is not None)


def _answers(
    scheme: Scheme, item: Item, annotators: Mapping[str, Labels]
) -> dict[str, dict[str, str]]:
    """Return the answers to a record by question, then annotator."""
    answers: dict[str, dict[str, str]] = {}
    for name, labels in annotators.items():
        for question, value in scheme.walk(labels.answers.get(item.id, {}))[0].items():
            answers.setdefault(question, {})[name] = value
    return answers


def _of_question(
    question: Question, records: Sequence[Mapping[str, Answers]], names: tuple[str, ...], seed: int
) -> QuestionAgreement | None:
    answers = [
        record[question.name] for record in records if len(record.get(question.name, {})) > 1
    ]
    if not answers:
        return None
    words = [choice.name for choice in question.choices]
    pairs, both = [], np.zeros((len(words), len(words)), np.int64)
    for first, second in combinations(names, 2):
        shared = [
            (answer[first], answer[second])
            for answer in answers
            if first in answer and second in answer
        ]
        if not shared:
            continue
        left, right = [a for a, _ in shared], [b for _, b in shared]
        pairs.append(PairAgreement(first, second, agreement(left, right, seed=seed)))
        both += confusion(left, right, words)[1]
    by_all = [answer for answer in answers if len(answer) == len(names)]
    counts = [[list(record.values()).count(word) for word in words] for record in by_all]
    several = len(names) > 2 and bool(by_all)
    return QuestionAgreement(
        question.name,
        records=len(answers),
        agreed=sum(len({*answer.values()}) == 1 for answer in answers),
        pairs=tuple(pairs),
        fleiss=fleiss_kappa(np.array(counts)) if several else None,
        fleiss_records=len(by_all) if several else 0,
        labels=tuple(sorted(_labels(words, both), key=lambda label: -label.given)),
        confused=tuple(sorted(_confused(words, both), key=lambda row: -row[2])),
    )


def _labels(words: Sequence[str], both: Any) -> Iterator[LabelAgreement]:
    for at, word in enumerate(words):
        given = int(both[at].sum() + both[:, at].sum())
        if given:
            yield LabelAgreement(word, given, 2 * int(both[at, at]) / given)


def _confused(words: Sequence[str], both: Any) -> Iterator[tuple[str, str, int]]:
    for a, b in combinations(range(len(words)), 2):
        if count := int(both[a, b] + both[b, a]):
            yield words[a], words[b], count


def disagreements(
    scheme: Scheme, items: Sequence[Item], annotators: Mapping[str, Labels]
) -> list[Disagreement]:
    """Yield the records that two annotators answered differently, in file order."""
    found = []
    for item in items:
        answers = _answers(scheme, item, annotators)
        differing = {
            name: labels for name, labels in answers.items() if len({*labels.values()}) > 1
        }
        if differing:
            unanimous = {
                name: next(iter(labels.values()))
                for name, labels in answers.items()
                if name not in differing and len(labels) > 1
            }
            notes = {
                name: text
                for name, labels in annotators.items()
                if (text := labels.notes.get(item.id))
            }
            found.append(Disagreement(item, differing, notes, unanimous, answers))
    return found


def exported(
    scheme: Scheme,
    items: Sequence[Item],
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
    unanimous = {
        given.item.id: given.unanimous for given in disagreements(scheme, items, annotators)
    }
    for item in items:
        answers = _answers(scheme, item, annotators)
        if not answers:
            continue
        decided = _decided(scheme, item, unanimous.get(item.id, {}), adjudicated)
        winners = decided or {
            name: word for name, given in answers.items() if (word := _majority(given))
        }
        answered = _consistent(scheme, winners)
        record = {**item.record, "log": item.text} if item.logs else dict(item.record)
        names = sorted({name for given in answers.values() for name in given})
        yield {
            **record,
            "label": {name: _value(scheme.question(name), word) for name, word in answered.items()},
            "label_certainty": {name: _share(answers.get(name, {}), word) for name, word in answered.items()},
            "label_from": _origin(decided, answers, names),
            "annotators": names,
            "unresolved": [] if decided else [name for name, given in answers.items() if not _majority(given)],
        }  # fmt: skip


def _decided(
    scheme: Scheme, item: Item, unanimous: Answers, adjudicated: Mapping[str, Labels]
) -> Answers:
    """Return the adjudicated answers of a record if they are complete; otherwise nothing."""
    for labels in adjudicated.values():
        if answers := labels.answers.get(item.id):
            found, open_question = scheme.walk({**unanimous, **answers})
            if open_question is None:
                return found
    return {}


def _consistent(scheme: Scheme, winners: Answers) -> dict[str, str]:
    """Drop answers that earlier ones rule out: each question has a majority of its own."""
    found: dict[str, str] = {}
    for question in scheme.questions:
        word = winners.get(question.name, "")
        if word in (choice.name for choice in question.choices_after(found)):
            found[question.name] = word
    return found


def _majority(answers: Answers) -> str:
    """Return the most frequent answer; empty if there is a tie."""
    first, *rest = Counter(answers.values()).most_common(2)
    return "" if rest and rest[0][1] == first[1] else first[0]


def _share(answers: Answers, word: str) -> float | None:
    if not answers:
        return None
    return round(sum(answer == word for answer in answers.values()) / len(answers), 4)


def _origin(decided: Answers, answers: Mapping[str, Answers], names: Sequence[str]) -> str:
    if decided:
        return "adjudicated"
    if len(names) == 1:
        return "single"
    return (
        "unanimous"
        if all(len({*given.values()}) == 1 for given in answers.values())
        else "majority"
    )


def _value(question: Question, word: str) -> str | bool | int:
    value = next(choice.value for choice in question.choices if choice.name == word)
    return word if value == "" else value
