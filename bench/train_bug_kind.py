"""Trains the model of bug kinds and writes ``src/epochzero/locate/kind.json``.

It learns from the labelled reports of Denchmark (the labels of Jahan et al., EMSE 2025, the first
annotator's): their titles and descriptions, nothing that came later. ``bug_kind.py`` measures it by
leaving projects out.

    python bench/train_bug_kind.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import data_file

from epochzero.locate.bug_kind import TYPES, KindModel, features
from epochzero.locate.query import Query, query_of
from epochzero.locate.report import Report

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/locate/kind.json"
DATA = "denchmark/reports.jsonl.gz"
OWN = {
    "apache+incubator-mxnet": ("mxnet",),
    "asyml+texar-pytorch": ("texar",),
    "fastai+fastai": ("fastai",),
    "keras-team+autokeras": ("autokeras",),
    "keras-team+keras": ("keras",),
    "mozilla+deepspeech": ("deepspeech", "mozilla_voice_stt"),
    "nvidia+digits": ("digits",),
    "nvidia+tensorrt": ("tensorrt",),
    "opencv+opencv": ("cv2", "opencv"),
    "pytorch+fairseq": ("fairseq",),
    "pytorch+pytorch": ("torch", "caffe2"),
    "ray-project+ray": ("ray",),
    "tensorflow+tfjs": ("tensorflowjs", "tfjs"),
    "tflearn+tflearn": ("tflearn",),
}
"""The top-level packages of the projects with labels, which a user's repository tells."""

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
WORD_SCALES = (0.0, 1.0, 3.0, 10.0)
"""How much words count beside signals; 0 leaves them out."""
BIAS_SCALE = 10.0
"""So large that the penalty hardly touches the bias."""
FEWEST_REPORTS, FEWEST_PROJECTS = 3, 2
FOLDS = 5
RATE, STEPS = 0.1, 250
NEWTON_STEPS = 20

Array = npt.NDArray[np.float32]
Part = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A labelled report."""

    id: str
    project: str
    query: Query
    features: Mapping[str, float]
    type: str
    extrinsic: bool
    second: tuple[str, bool]


@dataclass(frozen=True)
class Fitted:
    """A regression.

    Attributes:
        names: of the features, as many as weights.
        weights: (features, classes).
        penalty, word_scale: as chosen.
    """

    names: tuple[str, ...]
    weights: Array
    penalty: float
    word_scale: float

    def probabilities(self, cases: Sequence[Case]) -> Array:
        """Of each class for each case, (cases, classes)."""
        return _softmax(_matrix(cases, self.names) @ self.weights)


def main() -> None:
    """Trains on all labelled reports."""
    cases = labelled()
    extrinsic = fit(cases, extrinsic_classes(cases))
    types = fit(cases, type_classes(cases))
    fitted = calibration(left_out_logits(cases), extrinsic_classes(cases))
    told = _told(cases, extrinsic, types, fitted)
    TARGET.write_text(json.dumps(told, separators=(",", ":")) + "\n")
    print(f"{len(cases)} reports, {len(types.names)} features")
    for what, fitted in (("extrinsic", extrinsic), ("type", types)):
        print(f"{what}: penalty {fitted.penalty}, words x {fitted.word_scale}")


def labelled() -> list[Case]:
    """The reports that have a label, in the order of the data."""
    return [_case(raw) for raw in data_file(DATA).records if raw.get("label")]


def extrinsic_classes(cases: Sequence[Case]) -> Part:
    """1 for extrinsic, 0 for intrinsic."""
    return np.array([int(case.extrinsic) for case in cases])


def type_classes(cases: Sequence[Case]) -> Part:
    """The number of each case's type."""
    return np.array([TYPES.index(case.type) for case in cases])


def model_of(extrinsic: Fitted, types: Fitted) -> KindModel:
    """Both regressions in the form that the package uses."""
    logit = extrinsic.weights[:, 1] - extrinsic.weights[:, 0]
    rows = zip(types.names, types.weights.tolist(), strict=True)
    return KindModel(
        dict(zip(extrinsic.names, logit.tolist(), strict=True)),
        {name: tuple(row) for name, row in rows},
    )


def fit(cases: Sequence[Case], classes: Part, wanted: str = "") -> Fitted:
    """Multinomial logistic regression with an L2 penalty, all classes of equal weight.

    What share of its bugs is of which class differs so much from project to project that the shares
    of others tell nothing. Penalty and weight of the words are those with the least loss on projects
    left out of the given cases.

    Args:
        cases: to learn from.
        classes: of each case, from 0.
        wanted: ``signals`` or ``words`` for only these; empty for both.
    """
    names = _known(cases, wanted)
    x = _matrix(cases, names)
    x[:, names.index("bias")] *= BIAS_SCALE
    is_word = np.array([_is_word(name) for name in names])
    signals, words = x[:, ~is_word] @ x[:, ~is_word].T, x[:, is_word] @ x[:, is_word].T
    count = int(classes.max()) + 1
    y = np.eye(count, dtype=np.float32)[classes]
    folds = _folds([case.project for case in cases])
    scales = {"signals": (0.0,), "words": WORD_SCALES[1:]}.get(wanted, WORD_SCALES)
    tried: list[tuple[float, float, float]] = []
    for penalty, scale in product(PENALTIES, scales):
        found = _left_out(signals + scale**2 * words, y, folds, penalty)
        loss = -float((_balance(y)[:, 0] * np.log(np.maximum(found[y > 0], 1e-9))).mean())
        tried.append((loss, penalty, scale))
    _, penalty, scale = min(tried)
    scaled = x * np.where(is_word, scale, 1.0).astype(np.float32)
    weights = scaled.T @ _minimize(scaled @ scaled.T, y, penalty)
    weights[is_word] *= scale
    weights[names.index("bias")] *= BIAS_SCALE
    return Fitted(names, weights, penalty, scale)


def _left_out(gram: Array, y: Array, folds: Part, penalty: float) -> Array:
    """Probabilities for each case by a model that has not seen its fold."""
    found = np.zeros_like(y)
    for fold in range(FOLDS):
        out = folds == fold
        if out.any() and not out.all():
            dual = _minimize(gram[np.ix_(~out, ~out)], y[~out], penalty)
            found[out] = _softmax(gram[np.ix_(out, ~out)] @ dual)
    return found


def _minimize(gram: Array, y: Array, penalty: float) -> Array:
    """The weights of the cases whose sum of features is the best model, (cases, classes).

    The best weights of features are a weighted sum of the cases (representer theorem), and there are
    fewer cases than features: so the cases' inner products are all that is needed. By Adam (Kingma
    and Ba, ICLR 2015) along the axes of the inner products, on which the penalty is a plain square.
    """
    values, axes = np.linalg.eigh(gram.astype(np.float64))
    kept = values > 1e-6 * values[-1]
    root = np.sqrt(values[kept])
    z = (axes[:, kept] * root).astype(np.float32)
    balance = _balance(y)
    theta = np.zeros((z.shape[1], y.shape[1]), np.float32)
    mean, spread = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, STEPS + 1):
        gradient = z.T @ (balance * (_softmax(z @ theta) - y)) + penalty * theta
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        unbiased = mean / (1 - 0.9**step), spread / (1 - 0.999**step)
        theta -= RATE * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return np.asarray((axes[:, kept] / root) @ theta, np.float32)


def _balance(y: Array) -> Array:
    """The weight of each case with which all classes that occur weigh the same, (cases, 1)."""
    each = y @ (1.0 / np.maximum(y.sum(axis=0), 1.0))
    return np.asarray(each / each.mean(), np.float32)[:, None]


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


def _known(cases: Sequence[Case], wanted: str) -> tuple[str, ...]:
    """Features that enough reports of more than one project have: the others name a project."""
    reports: Counter[str] = Counter()
    projects: dict[str, set[str]] = {}
    for case in cases:
        reports.update(case.features.keys())
        for name in case.features:
            projects.setdefault(name, set()).add(case.project)
    kinds = {"signals": (False,), "words": (True,)}.get(wanted, (False, True))
    return tuple(
        name
        for name in sorted(reports)
        if name == "bias"
        or (
            reports[name] >= FEWEST_REPORTS
            and len(projects[name]) >= FEWEST_PROJECTS
            and _is_word(name) in kinds
        )
    )


def _is_word(name: str) -> bool:
    return name.startswith(("title:", "text:"))


def _matrix(cases: Sequence[Case], names: Sequence[str]) -> Array:
    rows = [[case.features.get(name, 0.0) for name in names] for case in cases]
    return np.array(rows, np.float32)


def _folds(projects: Sequence[str]) -> Part:
    """A fold for each case; a project stays together, and folds are as equal as can be."""
    size = Counter(projects)
    load = [0] * FOLDS
    fold: dict[str, int] = {}
    for project in sorted(size, key=lambda name: (-size[name], name)):
        fold[project] = min(range(FOLDS), key=load.__getitem__)
        load[fold[project]] += size[project]
    return np.array([fold[project] for project in projects])


def _case(raw: Mapping[str, Any]) -> Case:
    query = query_of(Report(raw["summary"] or "", raw["description"] or ""))
    second = raw.get("label_second") or raw["label"]
    return Case(
        raw["id"],
        raw["project"],
        query,
        features(query, OWN[raw["project"]]),
        raw["label"]["type"],
        raw["label"]["extrinsic"],
        (second["type"], second["extrinsic"]),
    )


def left_out_logits(cases: Sequence[Case]) -> Array:
    """The logit of "extrinsic" of each case, by a model that has not seen its fold of projects."""
    classes, folds = extrinsic_classes(cases), _folds([case.project for case in cases])
    logits = np.zeros(len(cases), np.float32)
    for fold in range(FOLDS):
        out = folds == fold
        train = [case for case, is_out in zip(cases, out, strict=True) if not is_out]
        test = [case for case, is_out in zip(cases, out, strict=True) if is_out]
        found = fit(train, classes[~out]).probabilities(test)
        logits[out] = np.log(found[:, 1] + 1e-9) - np.log(found[:, 0] + 1e-9)
    return logits


def calibration(logits: Array, classes: Part) -> tuple[float, float]:
    """Slope and intercept of a logistic regression on logits (Platt, 1999), by Newton's method."""
    x = np.stack([logits, np.ones_like(logits)], axis=1).astype(np.float64)
    weights = np.array([1.0, 0.0])
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-x @ weights))
        curvature = (x * (chance * (1 - chance))[:, None]).T @ x + 1e-6 * np.eye(2)
        weights -= np.linalg.solve(curvature, x.T @ (chance - classes))
    return float(weights[0]), float(weights[1])


def _told(
    cases: Sequence[Case], extrinsic: Fitted, types: Fitted, fitted: tuple[float, float]
) -> Mapping[str, Any]:
    model = model_of(extrinsic, types)
    return {
        "trained_on": {
            "reports": len(cases),
            "projects": sorted({case.project for case in cases}),
            "labels": "first annotator, Jahan et al., EMSE 2025",
            "never": "comments, fixes, dates, reports without a label",
        },
        "settings": {
            "extrinsic": {"penalty": extrinsic.penalty, "word_scale": extrinsic.word_scale},
            "types": {"penalty": types.penalty, "word_scale": types.word_scale},
        },
        "calibration": [round(value, 3) for value in fitted],
        "extrinsic": dict(_rounded(model.extrinsic)),
        "types": {
            name: [round(w, 3) for w in row] for name, row in model.types.items() if any(row)
        },
    }


def _rounded(weights: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for name, weight in weights.items():
        if rounded := round(weight, 3):
            yield name, rounded


if __name__ == "__main__":
    main()
