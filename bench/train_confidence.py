"""Trains the model of confidence and writes ``src/epochzero/diagnose/confidence.json``.

It learns how often categories are right on logs that no rule was written from: the held-out halves of the
labelled failures, the notebooks and our labels, and the raw logs, above all those of
``labels/raw_logs_first_look.jsonl``. Each of these counts twice: as right or wrong at its first evaluation, and as today, after rules were
written from it. What is right on new logs lies between. Before it writes, it measures the expected calibration error by leaving projects out, next to the error that
perfect probabilities would have on as few cases.

    python bench/train_confidence.py
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from common import SEED, data_file, jsonl, rate, verdict_of
from learning import FOLDS, fit, fold, write
from raw_log_texts import EVALUATED, cached, default_cache, raw_logs
from split import held, project_of

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.confidence import confidence_features
from epochzero.diagnose.linear import LinearModel
from epochzero.logs.source import Log

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/diagnose/confidence.json"
LABELS = Path(__file__).resolve().parent / "labels" / "held_out.jsonl"
FIRST_LOOK = LABELS.with_name("raw_logs_first_look.jsonl")
PENALTY = 3.0
BINS = 10
DRAWS = 200
FIRST_LOOK_WEIGHT = 3.0
"""Logs of jobs that no rule was written from are what is diagnosed; all others are more numerous here."""


class Case(NamedTuple):
    """A diagnosis of which it is known whether its category is right."""

    project: str
    source: str
    features: frozenset[str]
    right: bool


def main() -> None:
    cases = list(_cases())
    report = _measure(cases)
    print(json.dumps(report, indent=2))
    described = {"cases": len(cases), "projects": len({case.project for case in cases})}
    write(TARGET, train(cases), trained_on=described, measured=report)


def train(cases: Sequence[Case]) -> LinearModel:
    """A model of whether the categories of the cases are right."""
    return fit(
        [
            (
                c.features,
                "right" if c.right else "wrong",
                FIRST_LOOK_WEIGHT if c.source == "first_look" else 1.0,
            )
            for c in cases
        ],
        PENALTY,
    )


def _cases() -> Iterator[Case]:
    diagnoser = Diagnoser(redact=False)
    own = {row["id"]: row for row in jsonl(LABELS)}
    for name in ("labelled", "notebooks", "unlabelled"):
        for row in data_file(f"failures/{name}.jsonl.gz").records:
            label = row.get("label") or own.get(row["id"])
            if label and held(row["id"]):
                text = row["log"].encode()
                yield from _case(diagnoser, project_of(row["id"]), name, text, label["category"])
    logs = {log.id: log for path in EVALUATED for log in raw_logs(path)}
    first_look = {row["id"]: row["right"] for row in jsonl(FIRST_LOOK)}
    for log in logs.values():
        path = cached(log, default_cache())
        if not log.category or not path.is_file():
            continue
        source = "first_look" if log.id in first_look else "raw"
        for case in _case(diagnoser, log.repository, source, path.read_bytes(), log.category):
            yield case
            if log.id in first_look:
                yield case._replace(right=first_look[log.id])


def _case(
    diagnoser: Diagnoser, project: str, source: str, text: bytes, category: str
) -> Iterator[Case]:
    found = diagnoser.diagnose([Log("log", text=text)])
    if found.outcome == "failed":
        right = verdict_of(found) == category
        yield Case(project, source, confidence_features(found), right)


def _measure(cases: Sequence[Case]) -> Mapping[str, object]:
    """The expected calibration error on projects that were left out of the training."""
    stated: list[tuple[float, Case]] = []
    for left_out in range(FOLDS):
        model = train([case for case in cases if fold(case.project) != left_out])
        for case in cases:
            if fold(case.project) == left_out:
                answer, p = model.classify(case.features)
                stated.append((p if answer == "right" else 1.0 - p, case))
    sources = sorted({case.source for case in cases})
    return {
        "all": _errors(stated),
        **{s: _errors([(p, c) for p, c in stated if c.source == s]) for s in sources},
    }


def _errors(stated: Sequence[tuple[float, Case]]) -> Mapping[str, object]:
    by_chance = error_by_chance([p for p, _ in stated])
    return {**expected_error([(p, case.right) for p, case in stated]), "by_chance": by_chance}


def expected_error(stated: Sequence[tuple[float, bool]]) -> Mapping[str, object]:
    """How far stated probabilities are from shares, over bins of equal width."""
    error = 0.0
    for number in range(BINS):
        inside = [(p, r) for p, r in stated if min(BINS - 1, int(p * BINS)) == number]
        error += abs(sum(p for p, _ in inside) - sum(r for _, r in inside))
    right = sum(r for _, r in stated)
    return {"cases": len(stated), "right": right, "expected_error": rate(error, len(stated))}


def error_by_chance(probabilities: Sequence[float]) -> float:
    """The expected error of perfect probabilities, as only so many cases are counted."""
    draw = random.Random(SEED)
    errors = [
        expected_error([(p, draw.random() < p) for p in probabilities])["expected_error"]
        for _ in range(DRAWS)
    ]
    return round(statistics.mean(error for error in errors if isinstance(error, float)), 4)


if __name__ == "__main__":
    main()
