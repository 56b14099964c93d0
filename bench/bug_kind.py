"""Whether a bug is in the code at all, and of which type: cross-validated, whole projects left out.

Each project is judged by a model that was trained without it; the penalty, the weight of the words
and the threshold of the keywords are chosen inside the training projects. Beside it, in the same
run: the majority class, "always extrinsic", keywords, and the agreement of the two annotators (the
first one's labels are the truth). Labels are those of Jahan et al., EMSE 2025. A last part asks for extrinsic bugs of
other, traditional projects by their titles alone, of which nothing was trained on.

No number is free of choice: the features and the equal weight of the classes were settled after five
variants had been measured on these same reports, and MXNet reports with their labels were read while
the rules were written (no other labelled report was). So the cross-validated numbers are somewhat
optimistic; the last part was looked at after all choices and changed none.

    python bench/bug_kind.py
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from common import SEED, data_file, rate, save
from scoring import macro_f1, per_category
from train_bug_kind import (
    DATA,
    OWN,
    Case,
    calibration,
    extrinsic_classes,
    fit,
    labelled,
    left_out_logits,
    model_of,
    type_classes,
)

from epochzero.locate.blame import blames, prime_suspect
from epochzero.locate.bug_kind import TYPES, features
from epochzero.locate.environment import read_environment
from epochzero.locate.model import REPORTED_PROBABILITY
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

BUGL = "bugl/labelled.jsonl"
LARGEST = "apache+incubator-mxnet"
RESAMPLES = 1000
GROUPS = {"model": "", "signals_only": "signals", "words_only": "words"}

EXTRINSIC_WORDS = re.compile(
    r"\b(?:version|upgrad\w*|downgrad\w*|compatib\w*|incompatib\w*|dependenc\w*|requirements?"
    r"|install\w*|build|compil\w*|cmake|makefile|docker\w*|ci|travis|jenkins|environment|config\w*"
    r"|windows|macos|mac|ubuntu|linux|raspberry|android|driver|cuda|cudnn|gpu|hardware|memory"
    r"|download|link|url|third.party|deprecat\w*|pip|conda|package)\b",
    re.IGNORECASE,
)
"""What somebody would grep for who has read the definitions: environment, requirement, library."""
TYPE_WORDS = {
    "model": r"models?|layers?|network|architecture|activation|weights?|lstm|rnn|conv\w*|embedding",
    "training": r"train\w*|loss|gradient\w*|optimi[sz]er\w*|epochs?|batch\w*|dataset\w*"
    r"|augment\w*|preprocess\w*|hyper.?param\w*|learning rate|accuracy|metric\w*",
    "tensor": r"tensors?|shapes?|dimensions?|dtype|ndarray|broadcast\w*|reshape|axis|rank",
    "api": r"api|arguments?|deprecat\w*|function|method|parameter|keyword|signature|call",
    "gpu": r"gpus?|cuda|cudnn|device|driver|nvidia|out of memory|nccl",
    "ndl": r"docs?|documentation|tests?|ci|ui|file|path|build|install\w*|link|website|print|log",
}
"""The same for the types, from their definitions (Section 4, after Humbatova et al., ICSE 2020)."""
_TYPE_WORDS = {
    name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in TYPE_WORDS.items()
}

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Answers:
    """What one method says of all cases.

    Attributes:
        score: higher is more extrinsic, (cases,); None where it does not rank.
        extrinsic: 1 or 0 for each case.
        type: number of the type for each case.
    """

    score: Numbers | None
    extrinsic: Numbers
    type: Numbers


def main() -> None:
    """Measures, prints, and keeps the result."""
    cases = labelled()
    answers = _answers(cases)
    projects = np.array([case.project for case in cases])
    parts = {
        "all": np.ones(len(cases), bool),
        "without_mxnet": projects != LARGEST,
        "mxnet": projects == LARGEST,
    }
    numbers: dict[str, Any] = {
        name: _part([c for c, is_in in zip(cases, inside, strict=True) if is_in], answers, inside)
        for name, inside in parts.items()
    }
    numbers["suspects"] = _suspects(cases)
    numbers["reported"] = _reported(cases)
    titles = data_file(BUGL)
    numbers["traditional_projects_titles_only"] = _titles(cases, titles.records)
    for name in parts:
        _print(name, numbers[name])
    save("bug_kind", numbers, data=[data_file(DATA).described(), titles.described()])


def _answers(cases: Sequence[Case]) -> dict[str, Answers]:
    """The answers of all methods; each project by what was learned from the others."""
    count = len(cases)
    projects = np.array([case.project for case in cases])
    is_extrinsic, types = extrinsic_classes(cases), type_classes(cases)
    keyword_counts = np.array([_extrinsic_words(case) for case in cases])
    names = (*GROUPS, "keywords", "majority", "always_extrinsic")
    found = {n: Answers(np.zeros(count), np.zeros(count, int), np.zeros(count, int)) for n in names}
    for project in sorted(set(projects)):
        out = projects == project
        train = [case for case, is_out in zip(cases, out, strict=True) if not is_out]
        test = [case for case, is_out in zip(cases, out, strict=True) if is_out]
        known, known_types = is_extrinsic[~out], types[~out]
        most, prior = int(known.mean() >= 0.5), int(np.bincount(known_types).argmax())
        for name, group in GROUPS.items():
            score = fit(train, known, group).probabilities(test)[:, 1]
            said = fit(train, known_types, group).probabilities(test).argmax(axis=1)
            _put(found[name], out, score, score >= 0.5, said)
        best = _threshold(keyword_counts[~out], known)
        said = np.array([_type_by_words(case, prior) for case in test])
        _put(found["keywords"], out, keyword_counts[out], keyword_counts[out] >= best, said)
        _put(found["majority"], out, 0, most, prior)
        _put(found["always_extrinsic"], out, 0, 1, prior)
    return found


def _put(answers: Answers, out: Numbers, score: Any, extrinsic: Any, said: Any) -> None:
    answers.score[out], answers.extrinsic[out], answers.type[out] = score, extrinsic, said


def _threshold(scores: Numbers, known: Numbers) -> float:
    """The threshold with the best F1 on training projects."""
    return float(max(np.unique(scores), key=lambda at: _f1(known, scores >= at)))


def _extrinsic_words(case: Case) -> int:
    """How many different words of the list title and prose have; a title's count twice."""
    title, text = case.query.report.title, case.query.texts["prose"]
    return sum(len({w.lower() for w in EXTRINSIC_WORDS.findall(part)}) for part in (title, text))


def _type_by_words(case: Case, prior: int) -> int:
    """The type with the most words in title (counted thrice) and prose; the prior where none has."""
    title, text = case.query.report.title, case.query.texts["prose"]
    told = [
        3 * len(_TYPE_WORDS[name].findall(title)) + len(_TYPE_WORDS[name].findall(text))
        for name in TYPES
    ]
    return int(np.argmax(told)) if max(told) else prior


def _part(cases: Sequence[Case], answers: Mapping[str, Answers], inside: Numbers) -> dict[str, Any]:
    is_extrinsic, types = extrinsic_classes(cases), type_classes(cases)
    second = np.array([int(case.second[1]) for case in cases])
    second_type = np.array([TYPES.index(case.second[0]) for case in cases])
    told = {
        name: Answers(each.score[inside], each.extrinsic[inside], each.type[inside])
        for name, each in answers.items()
    }
    told["second_annotator"] = Answers(None, second, second_type)
    projects = np.array([case.project for case in cases])
    measured = {name: _measured(each, is_extrinsic, types, projects) for name, each in told.items()}
    return {
        "reports": len(cases),
        "projects": len(set(projects)),
        "extrinsic": rate(int(is_extrinsic.sum()), len(cases)),
        "types": dict(Counter(case.type for case in cases).most_common()),
        "methods": measured,
        "model_beyond_keywords": _beyond(told, is_extrinsic, types, projects),
        "calibration": _calibration(told["model"].score, is_extrinsic),
        "per_type": per_category(zip(_names(types), _names(told["model"].type), strict=True)),
        "kappa": {
            "extrinsic": _kappa(is_extrinsic, second),
            "type": _kappa(types, second_type),
        },
    }


def _measured(each: Answers, truth: Numbers, types: Numbers, projects: Numbers) -> dict[str, Any]:
    """All measures with their intervals; only types where the method does not rank: no AUC."""

    def interval(measure: Callable[[Numbers], float]) -> dict[str, Any]:
        return _with_intervals(measure, projects)

    told: dict[str, Any] = {
        "extrinsic_f1": interval(lambda n: _f1(truth[n], each.extrinsic[n])),
        "extrinsic_accuracy": interval(lambda n: float((truth[n] == each.extrinsic[n]).mean())),
        "type_accuracy": interval(lambda n: float((types[n] == each.type[n]).mean())),
        "type_macro_f1": interval(lambda n: _macro(types[n], each.type[n])),
    }
    if each.score is not None and len(np.unique(each.score)) > 1:
        score = each.score
        told["extrinsic_auc"] = interval(lambda n: _auc(truth[n], score[n]))
    return told


def _beyond(
    told: Mapping[str, Answers], truth: Numbers, types: Numbers, projects: Numbers
) -> dict[str, Any]:
    """By how much the model is better than the keywords, on the same reports."""
    ours, theirs = told["model"], told["keywords"]
    pairs: dict[str, Callable[[Numbers, Answers], float]] = {
        "extrinsic_f1": lambda n, each: _f1(truth[n], each.extrinsic[n]),
        "extrinsic_auc": lambda n, each: _auc(truth[n], each.score[n]),
        "type_accuracy": lambda n, each: float((types[n] == each.type[n]).mean()),
        "type_macro_f1": lambda n, each: _macro(types[n], each.type[n]),
    }
    return {
        name: _with_intervals(lambda n, m=measure: m(n, ours) - m(n, theirs), projects)
        for name, measure in pairs.items()
    }


def _with_intervals(measure: Callable[[Numbers], float], projects: Numbers) -> dict[str, Any]:
    """A measure with its 95 % bootstrap intervals, over reports and over projects."""
    draw = np.random.default_rng(SEED)
    groups = [np.flatnonzero(projects == name) for name in sorted(set(projects))]
    reports = [measure(draw.integers(0, len(projects), len(projects))) for _ in range(RESAMPLES)]
    told = {"value": _short(measure(np.arange(len(projects)))), "interval_95": _middle(reports)}
    if len(groups) > 1:
        drawn = (draw.integers(0, len(groups), len(groups)) for _ in range(RESAMPLES))
        by_project = [measure(np.concatenate([groups[n] for n in each])) for each in drawn]
        told["interval_95_by_project"] = _middle(by_project)
    return told


def _middle(values: Sequence[float]) -> list[float]:
    return [_short(float(v)) for v in np.nanpercentile(values, (2.5, 97.5))]


def _short(value: float) -> float:
    return round(value, 4)


def _f1(truth: Numbers, said: Numbers) -> float:
    right = int(((truth == 1) & (said == 1)).sum())
    return 2 * right / max(1, int((truth == 1).sum() + (said == 1).sum()))


def _macro(truth: Numbers, said: Numbers) -> float:
    return macro_f1(zip(_names(truth), _names(said), strict=True)) or 0.0


def _names(types: Numbers) -> list[str]:
    return [TYPES[number] for number in types]


def _auc(truth: Numbers, score: Numbers) -> float:
    """The chance that an extrinsic bug is ranked above an intrinsic one."""
    yes, no = score[truth == 1][:, None], score[truth == 0]
    return float(((yes > no) + 0.5 * (yes == no)).mean()) if yes.size and no.size else float("nan")


def _kappa(first: Numbers, second: Numbers) -> float:
    """Cohen's kappa of two annotators."""
    agreed = float((first == second).mean())
    chance = sum(float((first == n).mean() * (second == n).mean()) for n in np.unique(first))
    return round((agreed - chance) / (1 - chance), 4)


def _calibration(score: Numbers | None, truth: Numbers) -> list[dict[str, Any]]:
    """The share of extrinsic bugs by what the model says; it counts both kinds as equally likely."""
    if score is None:
        return []
    bins = [(low / 5, (score >= low / 5) & (score < low / 5 + 0.2)) for low in range(5)]
    return [
        {
            "from": low,
            "n": int(inside.sum()),
            "extrinsic": rate(int(truth[inside].sum()), int(inside.sum())),
        }
        for low, inside in bins
        if inside.any()
    ]


def _reported(cases: Sequence[Case]) -> dict[str, Any]:
    """The bugs that are reported unasked as extrinsic, and how many of them are.

    Weights and calibration come from other projects.
    """
    truth = extrinsic_classes(cases)
    projects = np.array([case.project for case in cases])
    logits = left_out_logits(cases)
    probability = np.zeros(len(cases))
    for project in set(projects):
        out = projects == project
        slope, intercept = calibration(logits[~out], truth[~out])
        probability[out] = 1 / (1 + np.exp(-(slope * logits[out] + intercept)))
    told = probability >= REPORTED_PROBABILITY
    return {"from": REPORTED_PROBABILITY, "n": int(told.sum()), "extrinsic": int(truth[told].sum())}


def _suspects(cases: Sequence[Case]) -> dict[str, Any]:
    """How often something is suspected, by label; whom nobody has labelled, so not how rightly."""
    told: dict[str, Counter[str]] = {"extrinsic": Counter(), "intrinsic": Counter()}
    for case in cases:
        found = blames(case.query, read_environment(case.query.report), OWN[case.project])
        prime = prime_suspect(found)
        label = "extrinsic" if case.extrinsic else "intrinsic"
        told[label][prime[0].suspect if prime else "none"] += 1
    return {label: dict(counted.most_common()) for label, counted in told.items()}


def _titles(cases: Sequence[Case], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Extrinsic bugs of traditional projects, by their titles, with the model of all cases."""
    fitted = fit(cases, extrinsic_classes(cases))
    model = model_of(fitted, fit(cases, type_classes(cases)))
    queries = [query_of(Report(record["summary"])) for record in records]
    score = np.array([model.extrinsic_probability(features(query)) for query in queries])
    words = np.array(
        [len(set(EXTRINSIC_WORDS.findall(query.report.title.lower()))) for query in queries]
    )
    truth = np.array([int(record["extrinsic"]) for record in records])
    second = np.array([int(record["extrinsic_second"]) for record in records])
    return {
        "reports": len(records),
        "extrinsic": rate(int(truth.sum()), len(truth)),
        "model": {"f1": _short(_f1(truth, score >= 0.5)), "auc": _short(_auc(truth, score))},
        "keywords": {"f1": _short(_f1(truth, words >= 1)), "auc": _short(_auc(truth, words))},
        "always_extrinsic": {"f1": _short(_f1(truth, np.ones_like(truth)))},
        "second_annotator": {"f1": _short(_f1(truth, second)), "kappa": _kappa(truth, second)},
    }


def _print(name: str, part: Mapping[str, Any]) -> None:
    print(f"{name}: {part['reports']} reports, {part['projects']} projects")
    for method, told in part["methods"].items():
        shown = "  ".join(f"{what} {each['value']:.3f}" for what, each in told.items())
        print(f"    {method:18}{shown}")


if __name__ == "__main__":
    main()
