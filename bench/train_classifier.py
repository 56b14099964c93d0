"""Trains the classifier of last resort and writes ``src/epochzero/diagnose/classifier.json``.

It learns from the development half only (``bench/split.py``): the labelled failures and notebooks,
our labels, and, with less weight, unlabelled failures whose category a signature or the general
reading knows. It never sees a held-out project. Before it writes, it measures itself by leaving
projects out, on the failures that nothing else knows and on all.

    python bench/train_classifier.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import data_file, jsonl
from learning import FOLDS, fit, fold, write
from split import held, project_of

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.classifier import words
from epochzero.diagnose.linear import LinearModel
from epochzero.logs.source import Log

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/diagnose/classifier.json"
LABELS = Path(__file__).resolve().parent / "labels" / "development.jsonl"
KNOWN_WEIGHT = 0.3
PENALTY = 0.3


@dataclass(frozen=True)
class Case:
    """One exception to learn from."""

    project: str
    kind: str
    message: str
    category: str
    weight: float
    known: bool


def main() -> None:
    cases = list(_cases())
    report = _measure(cases)
    print(json.dumps(report, indent=2))
    model = train(cases)
    write(
        TARGET,
        model,
        trained_on={
            "labelled": sum(1 for case in cases if case.weight == 1.0),
            "known_by_rule": sum(1 for case in cases if case.weight < 1.0),
            "projects": len({case.project for case in cases}),
            "never": "projects for which bench/split.py says held",
        },
        measured=report,
    )


def train(cases: Sequence[Case]) -> LinearModel:
    """A model of the words of the cases."""
    return fit([(words(c.kind, c.message), c.category, c.weight) for c in cases], PENALTY)


def _cases() -> Iterable[Case]:
    diagnoser = Diagnoser(redact=False)
    labels = {row["id"]: row for row in jsonl(LABELS)}
    for name in ("labelled", "notebooks", "unlabelled"):
        for row in data_file(f"failures/{name}.jsonl.gz").records:
            if held(row["id"]):
                continue
            label = row.get("label") or labels.get(row["id"])
            if case := _case(diagnoser, row, label["category"] if label else None):
                yield case


def _case(diagnoser: Diagnoser, row: dict[str, Any], category: str | None) -> Case | None:
    found = diagnoser.diagnose([Log(row["id"], text=row["log"].encode())])
    if found.exception is None or found.outcome != "failed" or category == "not_a_failure":
        return None
    known = found.basis in ("signature", "reading")
    if category is None and not known:
        return None
    return Case(
        project_of(row["id"]),
        found.exception.type,
        found.exception.message,
        category or found.category,
        1.0 if category else KNOWN_WEIGHT,
        known,
    )


def _measure(cases: Sequence[Case]) -> dict[str, Any]:
    """Accuracy on labelled cases of projects that were left out of the training."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for left_out in range(FOLDS):
        model = train([case for case in cases if fold(case.project) != left_out])
        for case in cases:
            if fold(case.project) == left_out and case.weight == 1.0:
                kind = "known by rule" if case.known else "unknown to all rules"
                asked[kind] += 1
                right[kind] += model.classify(words(case.kind, case.message))[0] == case.category
    return {kind: {"cases": asked[kind], "right": right[kind]} for kind in sorted(asked)}


if __name__ == "__main__":
    main()
