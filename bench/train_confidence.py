"""Trains the model of confidence and writes ``src/epochzero/diagnose/confidence.json``.

It learns how often categories are right on logs that nobody had tuned for: ``labels/raw_logs_first_look.jsonl``
holds, of each failed log of a part that was evaluated blind, what its category rested on at that first
evaluation and whether it was right. ``bench/raw_logs.py`` adds to the file. The held-out halves of the labelled
failures, the notebooks and our labels count less: rules were compared on them. Before it writes, it measures
the expected calibration error by leaving out one part at a time, with all projects that occur in it,
next to the error that perfect probabilities would have on as few cases.

    python bench/train_confidence.py
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from common import SEED, data_file, jsonl, rate, verdict_of
from learning import FOLDS, fit, fold, write
from sklearn.isotonic import isotonic_regression
from split import held, project_of

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.confidence import confidence_features
from epochzero.diagnose.linear import LinearModel
from epochzero.logs.source import Log

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/diagnose/confidence.json"
LABELS = Path(__file__).resolve().parent / "labels" / "held_out.jsonl"
FIRST_LOOK = LABELS.with_name("raw_logs_first_look.jsonl")
PENALTY = 3.0
STEP_CASES = 60
BINS = 10
DRAWS = 200
REPORT_WEIGHT = 0.3
"""Reports are cut to what their author thought relevant, and were evaluated more than once."""


class Case(NamedTuple):
    """A diagnosis of which it is known whether its category is right."""

    project: str
    part: str
    features: frozenset[str]
    right: bool
    first_look: bool


def main() -> None:
    cases = [*_first_looks(), *_reports()]
    report = _measure(cases)
    print(json.dumps(report, indent=2))
    described = {"cases": len(cases), "projects": len({case.project for case in cases})}
    write(TARGET, train(cases), trained_on=described, measured=report)


def train(cases: Sequence[Case]) -> LinearModel:
    """A model of whether the categories of the cases are right, in steps as high as the shares that were.

    The steps are an isotonic regression (Zadrozny and Elkan, KDD 2002) of what models of the other parts
    state of each part.
    """
    parts = sorted({case.part for case in cases if case.first_look})
    stated = []
    for part in parts:
        model = _weighted(_others(cases, [case for case in cases if case.part == part]))
        stated += [(_probability(model, case), case.right) for case in cases if case.part == part]
    return replace(_weighted(cases), steps=_steps(sorted(stated)))


def _steps(stated: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    """Upper bounds and shares of groups of at least `STEP_CASES`, with shares that do not decrease."""
    groups = [stated[n : n + STEP_CASES] for n in range(0, len(stated), STEP_CASES)]
    if len(groups) > 1 and len(groups[-1]) < STEP_CASES:
        groups[-2:] = [[*groups[-2], *groups[-1]]]
    shares = [statistics.mean(right for _, right in group) for group in groups]
    rising = isotonic_regression(shares, sample_weight=[len(group) for group in groups])
    return [
        (round(group[-1][0], 3), round(float(share), 3))
        for group, share in zip(groups, rising, strict=True)
    ]


def _probability(model: LinearModel, case: Case) -> float:
    answer, probability = model.classify(case.features)
    return probability if answer == "right" else 1.0 - probability


def _others(cases: Sequence[Case], left_out: Sequence[Case]) -> list[Case]:
    """The cases of all other projects."""
    projects = {case.project for case in left_out}
    return [case for case in cases if case.project not in projects]


def _weighted(cases: Sequence[Case]) -> LinearModel:
    return fit(
        [
            (
                case.features,
                "right" if case.right else "wrong",
                1.0 if case.first_look else REPORT_WEIGHT,
            )
            for case in cases
        ],
        PENALTY,
    )


def _first_looks() -> Iterator[Case]:
    for row in jsonl(FIRST_LOOK):
        features = frozenset(row["features"])
        yield Case(project_of(row["id"]), row["half"], features, row["right"], first_look=True)


def _reports() -> Iterator[Case]:
    diagnoser = Diagnoser(redact=False)
    own = {row["id"]: row for row in jsonl(LABELS)}
    for name in ("labelled", "notebooks", "unlabelled"):
        for row in data_file(f"failures/{name}.jsonl.gz").records:
            label = row.get("label") or own.get(row["id"])
            if label and held(row["id"]):
                found = diagnoser.diagnose([Log("log", text=row["log"].encode())])
                if found.outcome == "failed":
                    right = verdict_of(found) == label["category"]
                    features = confidence_features(found)
                    yield Case(project_of(row["id"]), name, features, right, first_look=False)


def _measure(cases: Sequence[Case]) -> Mapping[str, object]:
    """The expected calibration error on parts that were left out of the training; of reports, on projects."""
    stated: list[tuple[float, Case]] = []
    for part in sorted({case.part for case in cases if case.first_look}):
        stated += _stated(cases, [case for case in cases if case.part == part])
    for left_out in range(FOLDS):
        reports = (case for case in cases if not case.first_look)
        stated += _stated(cases, [case for case in reports if fold(case.project) == left_out])
    parts = sorted({case.part for case in cases})
    return {
        "first looks": _errors([(p, c) for p, c in stated if c.first_look]),
        **{part: _errors([(p, c) for p, c in stated if c.part == part]) for part in parts},
    }


def _stated(cases: Sequence[Case], left_out: Sequence[Case]) -> list[tuple[float, Case]]:
    """What a model of all other projects states of the cases that are left out."""
    model = train(_others(cases, left_out))
    return [(model.calibrated(_probability(model, case)), case) for case in left_out]


def _errors(stated: Sequence[tuple[float, Case]]) -> Mapping[str, object]:
    by_chance = error_by_chance([p for p, _ in stated])
    brier = rate(sum((p - case.right) ** 2 for p, case in stated), len(stated))
    errors = expected_error([(p, case.right) for p, case in stated])
    return {**errors, "by_chance": by_chance, "brier": brier}


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
