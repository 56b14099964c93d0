"""Is the bug in this code at all, and of which type: extrinsic or intrinsic; model, training,
tensor, api, gpu, or none of deep learning (ndl).

Two logistic regressions over the same features: named signals (what the text blames, how often it
uses the vocabulary of each type, properties of tracebacks and code) and words. The types and the two
kinds are those of Jahan et al. ("Towards Understanding the Challenges of Bug Localization in Deep
Learning Systems", EMSE 2025, Sections 4 and 5); the model learned from their labels
(``bench/train_bug_kind.py``), all classes with equal weight: in some projects none of the bugs is
extrinsic, in some most, so that the shares of others mislead. Only title and description are read.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from epochzero.locate.blame import RULES, SUSPECTS, Blame, blames, prime_suspect
from epochzero.locate.environment import Environment, read_environment
from epochzero.locate.model import Extrinsic
from epochzero.locate.query import Query

TYPES = ("model", "training", "tensor", "api", "gpu", "ndl")
MOST_EVIDENCE = 3

_VOCABULARY = {
    "layer": r"layers?|conv(?:olution)?\w*|lstm\w*|gru|rnn\w*|embedding\w*|attention|transformer\w*|encoder|decoder|dense|dropout|batch ?norm\w*|pooling|activation|relu|softmax|bidirectional",
    "model": r"models?|network|architecture|checkpoint\w*|weights?|pre-?trained|backbone|inference|predict\w*|state_dict|symbol\w*|onnx|resnet\w*|bert|vgg\w*",
    "training": r"train\w*|epochs?|fit|fine-?tun\w*|learning rate|lr|scheduler|optimi[sz]er\w*|adam\w*|sgd|momentum|batch(?:_?size)?|iterations?|callbacks?|early stopping|gradients?|backward|autograd|backprop\w*",
    "loss": r"loss(?:es)?|nan|inf|converg\w*|accuracy|metrics?|cross ?entropy|perplexity|overfit\w*|diverg\w*",
    "preprocessing": r"data ?loader\w*|data ?sets?|augment\w*|transforms?|preprocess\w*|tokeni[sz]\w*|vocab\w*|normali[sz]\w*|crop\w*|shuffl\w*|sampler",
    "tensor": r"tensors?|ndarrays?|shapes?|dim(?:ension)?s?|reshape|broadcast\w*|axis|rank|transpose|slic\w*|index(?:ing)?|concat\w*|scalar",
    "dtype": r"dtypes?|float(?:16|32|64)|u?int(?:8|32|64)|half|fp16|cast(?:ing)?|bool|precision",
    "numeric": r"incorrect|wrong|overflow|underflow|inconsistent|different (?:results?|outputs?)|mismatch\w*",
    "gpu": r"gpus?|cuda|cudnn|cublas|nccl|device|multi-?gpu|nvidia|vram|\w*\.cuda|webgl|kernel",
    "memory": r"out of memory|oom|memory leak\w*|leaks?|gpu memory|segfault|segmentation fault|core dumped",
    "distributed": r"distributed|horovod|workers?|parallel|kvstore|nodes?|cluster|multiprocess\w*",
    "api": r"api|arguments?|args?|kwargs|parameters?|keyword|function|method|signature|return(?:s|ed)?|call(?:s|ed|ing)?|undefined|interface|typings?|export(?:ed|s)?|usage",
    "missing": r"missing|not supported|unsupported|not implemented|does not exist|unable|cannot|deprecated|no longer",
    "documentation": r"docs?|documentation|docstring|readme|tutorials?|website|typo|spelling|link|example|notebook",
    "testing": r"tests?|unit ?tests?|ci|flaky|jenkins|travis|nightly|coverage|lint",
    "building": r"build\w*|compil\w*|c?make|install\w*|pip|conda|wheel|docker|package|setup|link(?:er|ing)",
    "interface": r"ui|browser|button|page|display\w*|print\w*|log(?:s|ging)?|messages?|visuali[sz]\w*|progress|dashboard|command line|cli",
    "files": r"files?|paths?|director(?:y|ies)|folders?|load\w*|sav\w*|read\w*|writ\w*|download\w*|s3|json|csv|config\w*|pickl\w*|serializ\w*",
    "concurrency": r"threads?|hang\w*|deadlock|race|async|process(?:es)?|stuck|timeout|freez\w*",
    "slow": r"slow\w*|performance|speed|latency|faster",
    "language": r"java|scala|clojure|julia|perl|r package|c\+\+|javascript|typescript|node|npm|react",
    "regression": r"regression|used to|no longer works?|worked (?:before|in|with)|after upgrad\w*|latest|since|broke\w*",
}
_LISTS = {
    name: re.compile(rf"(?<![\w])(?:{pattern})(?![\w])", re.IGNORECASE)
    for name, pattern in _VOCABULARY.items()
}
_OF_TYPE = {
    "model": ("layer", "model"),
    "training": ("training", "loss", "preprocessing"),
    "tensor": ("tensor", "dtype"),
    "api": ("api",),
    "gpu": ("gpu", "memory"),
    "ndl": ("documentation", "testing", "building", "interface", "files"),
}
"""The word lists of each type, by the study's definitions (Section 4)."""
_ERRORS = {
    "importing": r"ImportError|ModuleNotFoundError",
    "arguments": r"TypeError|unexpected keyword|positional argument",
    "attributes": r"AttributeError|is not a function|undefined is not",
    "values": r"ValueError|InvalidArgument|AssertionError|Check failed",
    "lookups": r"KeyError|IndexError|out of (?:range|bounds)",
    "system": r"OSError|IOError|FileNotFound|Permission denied|No such file",
    "runtime": r"RuntimeError|MXNetError|InternalError|CUDA error|CUDNN_",
}
_ERROR_LISTS = {name: re.compile(pattern) for name, pattern in _ERRORS.items()}


@dataclass(frozen=True, slots=True)
class BugKind:
    """The predicted kind of the bug that a report describes.

    Attributes:
        extrinsic: whether its cause lies outside of this code, and what is suspected. A suspect is
            named at any probability.
        type: the likeliest of `TYPES`.
        probabilities: of each type, if all were equally common; they add up to 1.
    """

    extrinsic: Extrinsic
    type: str
    probabilities: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class KindModel:
    """Weights of both regressions.

    Attributes:
        extrinsic: weight of each feature for "extrinsic", in logits.
        types: weights of each feature for each of `TYPES`, in their order.
        calibration: slope and intercept that turn the logit into that of a probability (Platt,
            1999), fitted on projects that the weights had not seen.

    The feature ``bias`` is 1 in every report.
    """

    extrinsic: Mapping[str, float]
    types: Mapping[str, tuple[float, ...]]
    calibration: tuple[float, float] = (1.0, 0.0)

    def extrinsic_probability(self, found: Mapping[str, float]) -> float:
        """The probability that a bug with these features is extrinsic."""
        logit = sum(value * self.extrinsic.get(name, 0.0) for name, value in found.items())
        slope, intercept = self.calibration
        return 1.0 / (1.0 + math.exp(-(slope * logit + intercept)))

    def type_probabilities(self, found: Mapping[str, float]) -> Mapping[str, float]:
        """The probability of each type for a bug with these features."""
        nothing = (0.0,) * len(TYPES)
        rows = [(value, self.types.get(name, nothing)) for name, value in found.items()]
        logits = [sum(value * row[n] for value, row in rows) for n in range(len(TYPES))]
        powers = [math.exp(logit - max(logits)) for logit in logits]
        return {name: power / sum(powers) for name, power in zip(TYPES, powers, strict=True)}


def read_kind(query: Query, own: Collection[str] = ()) -> BugKind:
    """Predict the kind of the bug that a report describes, with the model of the package.

    Args:
        query: the report.
        own: top-level packages of the repository that is searched, so that a traceback that ends in
            them blames no other library.
    """
    environment = read_environment(query.report)
    blamed = blames(query, environment, own)
    found = _features(query, environment, blamed)
    model = kind_model()
    types = model.type_probabilities(found)
    suspects = prime_suspect(blamed)
    extrinsic = Extrinsic(
        probability=model.extrinsic_probability(found),
        suspect=suspects[0].suspect if suspects else "",
        name=next((blame.name for blame in suspects if blame.name), ""),
        evidence=tuple(dict.fromkeys(blame.line for blame in suspects))[:MOST_EVIDENCE],
    )
    return BugKind(extrinsic, max(types, key=types.__getitem__), types)


def features(query: Query, own: Collection[str] = ()) -> dict[str, float]:
    """The features of a report by name, those that are 0 left out.

    Signals are named as they are, words of the title ``title:WORD``, of the whole ``text:WORD``.

    Args:
        query: the report.
        own: as for `read_kind`.
    """
    environment = read_environment(query.report)
    return _features(query, environment, blames(query, environment, own))


@cache
def kind_model() -> KindModel:
    """The model of the package."""
    raw: dict[str, Any] = json.loads(
        files(__package__).joinpath("kind.json").read_text(encoding="utf-8")
    )
    types = {name: tuple(weights) for name, weights in raw["types"].items()}
    slope, intercept = raw["calibration"]
    return KindModel(raw["extrinsic"], types, (slope, intercept))


def _features(
    query: Query, environment: Environment, blamed: Collection[Blame]
) -> dict[str, float]:
    found = {"bias": 1.0}
    found |= _blame_signals(blamed)
    found |= _vocabulary_signals(query)
    found |= _shape_signals(query, environment)
    found |= _words("title", query.words["summary"])
    found |= _words("text", query.words["all"])
    return {name: value for name, value in found.items() if value}


def _blame_signals(blamed: Collection[Blame]) -> dict[str, float]:
    by_rule = {blame.rule: 1.0 for blame in blamed}
    signals = {f"blames:{rule}": by_rule.get(rule, 0.0) for rule in RULES}
    for suspect in SUSPECTS:
        weight = sum(blame.weight for blame in blamed if blame.suspect == suspect)
        signals[f"suspects:{suspect}"] = math.log1p(weight)
    signals["suspects:any"] = math.log1p(sum(blame.weight for blame in blamed))
    return signals


def _vocabulary_signals(query: Query) -> dict[str, float]:
    """How much of the title and of the prose is of each word list."""
    signals: dict[str, float] = {}
    counts: dict[str, int] = {}
    size = max(20.0, len(query.texts["prose"].split()))
    for name, pattern in _LISTS.items():
        title = len(pattern.findall(query.report.title))
        prose = len(pattern.findall(query.texts["prose"]))
        signals[f"title_has:{name}"] = float(bool(title))
        signals[f"prose_has:{name}"] = min(1.0, 10.0 * prose / size)
        counts[name] = 2 * title + prose  # the prose holds the title, too
    of_type = {kind: sum(counts[name] for name in lists) for kind, lists in _OF_TYPE.items()}
    total = sum(of_type.values()) or 1
    return signals | {f"speaks_of:{kind}": 2 * count / total for kind, count in of_type.items()}


def _shape_signals(query: Query, environment: Environment) -> dict[str, float]:
    """Which parts the report has: traceback, code, errors, environment."""
    errors = query.texts["error"]
    signals = {
        "has_traceback": float(bool(query.frames)),
        "has_code": float(len(query.texts["code"]) > 20),
        "has_error": float(bool(errors)),
        "is_short": float(len(query.texts["all"]) < 400),
        "tells_libraries": min(1.0, len(environment.of("library")) / 5),
        "tells_gpu": float(bool(environment.of("gpu") or environment.of("driver"))),
        "tells_cuda": float(bool(environment.of("cuda") or environment.of("cudnn"))),
        "tells_container": float(bool(environment.of("container"))),
        "names_source": float(bool(query.paths)),
    }
    for name, pattern in _ERROR_LISTS.items():
        signals[f"error:{name}"] = float(bool(pattern.search(query.texts["all"])))
    return signals


def _words(part: str, counted: Counter[str]) -> dict[str, float]:
    """Words by ``log(1 + count)``, the whole part of length 1."""
    weights = {word: math.log1p(count) for word, count in counted.items()}
    norm = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
    return {f"{part}:{word}": weight / norm for word, weight in weights.items()}
