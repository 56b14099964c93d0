"""Counts how often the roots that watching names are right; writes ``src/epochzero/run/watch/calibration.json``.

Over the trainings of ``lab/watch`` that are not held out, faulty and healthy ones: of each the root with the strength
of its signs, and whether it is the word of the truth. The curve of all kinds is the isotonic regression of right on
strength (pool adjacent violators; Zadrozny and Elkan, KDD 2002); the counts of each kind are kept beside it.
Searches were mended on these trainings. So all is multiplied with a discount: how many roots were right at the first
look at new trainings, beside how many the counts promise of them. Before it writes it measures itself, without the
discount, by leaving programs out: the calibration error of a tenth of the models and data sets, with what the
others tell.

    python bench/train_watch_confidence.py --records FOLDER --python PYTHON
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from watch import Case, cases_of_lab, is_named, records_of_all

from epochzero.run.watch.calibration import Calibration
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import read_records
from epochzero.run.watch.verdict import conclude
from epochzero_models.evaluate.calibration import expected_calibration_error

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/run/watch/calibration.json"
SEED = 20_200_627
FOLDS = 10
FEW = 5
"""A step of the curve is of so many roots at least."""
FIRST_LOOK = (
    ("not_shuffled", 0.93, True), ("weight_init_wrong", 0.86, True), ("activation_wrong", 0.8, True),
    ("weight_init_wrong", 0.86, True), ("input_scale_wrong", 0.9, True),
    ("gradient_clipping_wrong", 0.92, True), ("zero_grad_missing", 0.97, True),
    ("regularization_missing", 0.64, False), ("regularization_missing", 0.64, False),
    ("activation_missing", 0.78, True), ("regularization_too_strong", 0.88, True),
)  # fmt: skip
"""The roots in the open half of ``lab/watch/families`` when nothing had been mended on it, and whether they were right."""


@dataclass(frozen=True, slots=True)
class Root:
    """A root that was named: of which model and data set, with what strength, and whether it was right."""

    base: str
    word: str
    strength: float
    right: bool


def main() -> None:
    """Reads, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="that has torch and the rest")
    parser.add_argument("--records", type=Path, required=True, help="folder that keeps records")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.records.mkdir(parents=True, exist_ok=True)
    cases = [case for case in cases_of_lab() if not case.held_out]
    found = records_of_all(cases, options.records, options)
    roots = [root for case, records in found if (root := _root(case, records)) is not None]
    print(f"{len(roots)} roots, {sum(one.right for one in roots)} right, of {len(found)} trainings")
    print(
        f"calibration error of the strength itself: {_error(roots, [r.strength for r in roots]):.3f}"
    )
    print(f"calibration error, programs left out: {_error(roots, _left_out(roots)):.3f}")
    TARGET.write_text(json.dumps(discounted(counted(roots)), indent=1) + "\n", encoding="utf-8")


def _root(case: Case, records: Iterable[Any]) -> Root | None:
    history = read_records(records)
    root = conclude(history).root
    if root is None:
        return None
    found = catalogue()[root.word](history)
    strength = max(finding.confidence for finding in found if finding.place == root.place)
    base = str(case.truth.get("base") or case.name.partition("/")[2])
    return Root(base, root.word, strength, bool(case.truth) and is_named(case, root.word))


def counted(roots: Sequence[Root]) -> dict[str, Any]:
    """The JSON form of the calibration that these roots make."""
    words: dict[str, list[int]] = {}
    for one in roots:
        of_word = words.setdefault(one.word, [0, 0])
        of_word[0] += one.right
        of_word[1] += 1
    curve = _isotonic(roots)
    return {
        "roots": len(roots),
        "curve": curve,
        "words": dict(sorted(words.items())),
        "discount": 1.0,
    }


def discounted(stored: Mapping[str, Any]) -> dict[str, Any]:
    """With the discount that the first look at new trainings asks for."""
    found = Calibration.of(stored)
    promised = sum(found.confidence(word, strength) for word, strength, _ in FIRST_LOOK)
    right = sum(right for _, _, right in FIRST_LOOK)
    return {**stored, "discount": round(min(1.0, right / promised), 4)}


def _isotonic(roots: Sequence[Root]) -> list[list[float]]:
    """Steps of strength and share of right ones, both rising."""
    steps: list[list[float]] = []
    for one in sorted(roots, key=lambda root: root.strength):
        if steps and (steps[-1][0] == one.strength or steps[-1][2] < FEW):
            steps[-1][1] += one.right
            steps[-1][2] += 1
        else:
            steps.append([one.strength, float(one.right), 1.0])
    rising: list[list[float]] = []
    for step in steps:
        rising.append(step)
        while len(rising) > 1 and (rising[-1][2] < FEW or _falls(*rising[-2:])):
            _, right, count = rising.pop()
            rising[-1][1] += right
            rising[-1][2] += count
    return [[strength, round(right / count, 4)] for strength, right, count in rising]


def _falls(before: Sequence[float], after: Sequence[float]) -> bool:
    return after[1] / after[2] <= before[1] / before[2]


def _left_out(roots: Sequence[Root]) -> list[float]:
    """The confidence of each root by what those of other folds tell."""
    of_fold = {
        fold: Calibration.of(counted([one for one in roots if _fold(one) != fold]))
        for fold in range(FOLDS)
    }
    return [of_fold[_fold(one)].confidence(one.word, one.strength) for one in roots]


def _fold(root: Root) -> int:
    return int(hashlib.sha256(root.base.encode()).hexdigest(), 16) % FOLDS


def _error(roots: Sequence[Root], confidence: Sequence[float]) -> float:
    right = np.array([one.right for one in roots])
    error = expected_calibration_error(np.array(confidence), right, SEED).value
    assert error is not None
    return error


if __name__ == "__main__":
    main()
