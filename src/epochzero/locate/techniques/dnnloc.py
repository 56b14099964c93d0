"""DNNLOC: textual similarity, a learned relevancy and the history of fixes, combined by a network.

A. N. Lam, A. T. Nguyen, H. A. Nguyen, T. N. Nguyen: "Bug Localization with Combination of Deep
Learning and Information Retrieval", ICPC 2017. Six numbers of a file and a report go into a network
with one hidden layer, whose output ranks all files (Section VII):

- relevancy: the report's words and the file's, each kind in a space of its own, are projected to few
  dimensions by autoencoders, and a network predicts from the projections whether they belong together
  (Sections V and VI), so that words may be related that differ;
- text: rVSM of the report and the file (IV.C; `epochzero.locate.techniques.buglocator`);
- collaborative: rVSM of the report and the joined texts of the past reports that were fixed in the
  file (IV.D, after Ye et al., FSE 2014);
- class names: the cosine of the names in the report and the names of the file's classes (IV.D);
- recency: ``1 / (months since the file's last fix + 1)``, by the calendar (IV.D);
- frequency: how often the file was fixed (IV.D).

"All the scores are scaled and normalized to be within 0-1": here over the files of the project, for
each report; recency and relevancy are within already.

What differs from the paper, which trains a model for each project on that project's past reports:

- This one must serve a repository that it has never seen. It is trained on bugs of other projects,
  and its words are those that the reports of most of these projects share; the words that only one
  project has, which the paper's relevancy learns, it cannot know. Expect less of it.
- The spaces of a file are identifiers; what it calls and imports, for the names of API classes and
  methods; comments with string literals. Descriptions of the libraries used are not at hand.
- ``n`` and ``N`` of tf-idf count the project's files, and for words of the report the reports that
  were trained on; each vector has length 1.
- Fixes are identified by `epochzero.code.Change.is_fix`, with or without a report.
- The projection is far smaller than the paper's 1,000 nodes, so that the model can ship.

``dnnloc.json`` was made by ``bench/train_dnnloc.py``; it states on what it was trained and on what
never.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from epochzero.code import Bag
from epochzero.code.words import words
from epochzero.locate.corpus import bag_of
from epochzero.locate.index import Floats
from epochzero.locate.techniques.base import Method
from epochzero.locate.techniques.buglocator import rvsm
from epochzero.locate.techniques.vectors import (
    Idf,
    Postings,
    asked,
    cosine,
    length_boost,
    log_frequency,
    scaled,
    vectors_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code import Parsed
    from epochzero.locate.corpus import Corpus
    from epochzero.locate.query import Query


COLUMNS = ("text", "collaborative", "class_names", "recency", "frequency")
"""The features that are not learned, in the order of the network's inputs after the relevancy."""
SPACES = ("identifiers", "apis", "comments")
"""The spaces of a file's words (Section IV.B); a report's words have one, too."""


# -- The network -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DenseLayer:
    """A layer whose nodes are all connected to those before.

    Attributes:
        weights: (inputs, outputs).
        bias: (outputs,).
    """

    weights: Floats
    bias: Floats

    def tanh(self, values: Floats) -> Floats:
        """What the nodes give (Section VI), (rows, inputs) -> (rows, outputs)."""
        return np.asarray(np.tanh(values @ self.weights + self.bias), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class DnnLocModel:
    """What is learned.

    Attributes:
        words: hashes of the vocabulary: sorted, (words,).
        rarity: idf of each word among the reports that were trained on, (words,).
        encoders: of the report's words (``report``) and of each of `SPACES`, words to dimensions.
        relevancy: hidden and output layer; the inputs are the report's dimensions, then a file's.
        combination: the same; the inputs are the relevancy and `COLUMNS`.
    """

    words: NDArray[np.uint32]
    rarity: Floats
    encoders: Mapping[str, DenseLayer]
    relevancy: tuple[DenseLayer, DenseLayer]
    combination: tuple[DenseLayer, DenseLayer]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> DnnLocModel:
        """A network from what `as_json` gave."""
        return cls(
            np.array(raw["words"], np.uint32),
            np.array(raw["rarity"], np.float32),
            {space: _layer(layer) for space, layer in raw["encoders"].items()},
            (_layer(raw["relevancy"][0]), _layer(raw["relevancy"][1])),
            (_layer(raw["combination"][0]), _layer(raw["combination"][1])),
        )

    def as_json(self) -> Mapping[str, Any]:
        """The network in short numbers: the weights of a layer are whole multiples of its step."""
        return {
            "words": self.words.tolist(),
            "rarity": [round(float(value), 3) for value in self.rarity],
            "encoders": {space: _raw(layer) for space, layer in self.encoders.items()},
            "relevancy": [_raw(layer) for layer in self.relevancy],
            "combination": [_raw(layer) for layer in self.combination],
        }

    def report_code(self, counts: Floats) -> Floats:
        """The projection of a report (Section V), (1, dimensions).

        Args:
            counts: how often each word occurs in it, (words,).
        """
        weights = log_frequency(counts[None]) * self.rarity
        return self.encoders["report"].tanh(_unit(weights))

    def file_codes(self, weights: Mapping[str, Floats]) -> Floats:
        """The projections of files, one space after the other, (files, spaces * dimensions).

        Args:
            weights: as `file_weights` gives them for these words.
        """
        codes = [self.encoders[space].tanh(_unit(weights[space])) for space in SPACES]
        return np.concatenate(codes, axis=1)

    def relevancies(self, report: Floats, codes: Floats) -> Floats:
        """How surely each file belongs to a report, from their projections, 0 to 1, (files,)."""
        both = np.concatenate([np.repeat(report, len(codes), axis=0), codes], axis=1)
        return _output(self.relevancy, both)

    def combined(self, relevancy: Floats, table: Floats) -> Floats:
        """The score of each file from all six features (Section VII), 0 to 1, (files,).

        Args:
            relevancy: (files,).
            table: `COLUMNS`, (files, 5).
        """
        return _output(self.combination, np.column_stack([relevancy, table]))


def _output(layers: tuple[DenseLayer, DenseLayer], inputs: Floats) -> Floats:
    hidden, output = layers
    sums = (hidden.tanh(inputs) @ output.weights + output.bias)[:, 0]
    return np.asarray(1 / (1 + np.exp(-sums.astype(np.float64))), np.float32)


def _unit(weights: Floats) -> Floats:
    """Rows of length 1; those without words stay 0."""
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.where(lengths > 0, lengths, 1), np.float32)


LARGEST_STEP = 127
"""The largest weight of a layer is so many steps."""


def _raw(layer: DenseLayer) -> Mapping[str, Any]:
    step = max(float(f"{np.abs(layer.weights).max() / LARGEST_STEP:.6g}"), 1e-6)
    return {
        "step": step,
        "weights": np.rint(layer.weights / step).astype(int).tolist(),
        "bias": [round(float(value), 4) for value in layer.bias],
    }


def _layer(raw: Mapping[str, Any]) -> DenseLayer:
    weights = np.array(raw["weights"], np.float32) * np.float32(raw["step"])
    return DenseLayer(weights, np.array(raw["bias"], np.float32))


# -- Words -------------------------------------------------------------------------------------


def report_counts(query: Query, vocabulary: NDArray[np.uint32]) -> Floats:
    """How often each word occurs in a report, (words,)."""
    bag = Bag.of(words(query.texts["all"]))
    return np.asarray(Postings.of([bag]).counts(vocabulary)[0], np.float32)


def file_weights(corpus: Corpus, vocabulary: NDArray[np.uint32]) -> Mapping[str, Floats]:
    """The tf-idf of words in each of `SPACES` of each file (Section IV.B), (files, words)."""
    idf = vectors_of(corpus).idf.of(vocabulary)
    spaces = [_bags(parsed) for parsed in corpus.parsed]
    return {
        space: log_frequency(Postings.of([bags[space] for bags in spaces]).counts(vocabulary)) * idf
        for space in SPACES
    }


def _bags(parsed: Parsed) -> Mapping[str, Bag]:
    imported = [name for i in parsed.imports for name in (i.module, *i.names)]
    return {
        "identifiers": parsed.bags["identifiers"],
        "apis": Bag.of(words(" ".join([*imported, *parsed.called]))),
        "comments": _joined([parsed.bags["comments"], parsed.bags["strings"]]),
    }


def _joined(bags: Sequence[Bag]) -> Bag:
    """The bag of several texts together."""
    held = np.concatenate([bag.hashes for bag in bags])
    found, place = np.unique(held, return_inverse=True)
    counts = np.bincount(place, np.concatenate([bag.counts for bag in bags]), len(found))
    return Bag(
        found,
        np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16),
        sum(bag.total for bag in bags),
    )


# -- Features ----------------------------------------------------------------------------------


def columns(query: Query, corpus: Corpus) -> tuple[tuple[str, ...], Floats]:
    """The features of each file that are not learned (Sections IV.C and IV.D).

    Args:
        query: the report, taken apart.
        corpus: where to look, with its history and past reports.

    Returns:
        `COLUMNS`, and the values, each from 0 to 1, (files, 5).
    """
    recency, frequency = _fixes(query, corpus)
    found = [
        scaled(rvsm(query, corpus)),
        scaled(_past(corpus).similarity(query)),
        scaled(_class_names(query, corpus)),
        recency,
        scaled(frequency),
    ]
    return COLUMNS, np.stack(found, axis=1)


def _class_names(query: Query, corpus: Corpus) -> Floats:
    """The cosine of the names that a report mentions and those of each file's classes, (files,)."""
    vectors = vectors_of(corpus)
    named = Counter(words(" ".join(query.identifiers["all"])))
    asks = np.array([[named[term]] for term in query.terms], np.float32).reshape(-1, 1)
    counts = vectors.names["class"].counts(query.hashes)
    return cosine(counts, vectors.norms("class"), asks, vectors.idf.of(query.hashes))[:, 0]


def _fixes(query: Query, corpus: Corpus) -> tuple[Floats, Floats]:
    """How lately and how often each file was fixed before the report, (files,) each."""
    file, time, fix = corpus.changed
    opened = query.report.opened
    if opened is None:
        opened = float(time.max(initial=0.0))
    counted = fix & (time <= opened)
    frequency = np.bincount(file[counted], minlength=len(corpus)).astype(np.float32)
    last = np.zeros(len(corpus))
    np.maximum.at(last, file[counted], time[counted])
    months = _months(np.array([opened])) - _months(last)
    return np.where(frequency > 0, 1 / (months + 1), 0).astype(np.float32), frequency


def _months(times: NDArray[np.float64]) -> NDArray[np.int64]:
    """The calendar months since 1970 of times in seconds."""
    return times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)


class _Past:
    """For each file the joined texts of the past reports that were fixed in it."""

    def __init__(self, corpus: Corpus) -> None:
        fixed: defaultdict[int, list[Bag]] = defaultdict(list)
        for past in corpus.past:
            bag = bag_of(f"{past.report.title}\n{past.report.text}")
            for path in set(past.fixed) & corpus.number.keys():
                fixed[corpus.number[path]].append(bag)
        self._idf: Idf = vectors_of(corpus).idf
        self._files = np.array(sorted(fixed), np.int64)
        self._size = len(corpus)
        self._postings = Postings.of([_joined(fixed[number]) for number in sorted(fixed)])

    @cached_property
    def _norms(self) -> Floats:
        return self._postings.norms(self._idf)

    def similarity(self, query: Query) -> Floats:
        """The collaborative filtering score of each file, (files,)."""
        counts = self._postings.counts(query.hashes)
        asks = asked(query).sum(axis=1, keepdims=True)
        alike = cosine(counts, self._norms, asks, self._idf.of(query.hashes))[:, 0]
        scores = np.zeros(self._size, np.float32)
        scores[self._files] = alike * length_boost(self._postings.lengths)
        return scores


_KEPT: WeakKeyDictionary[Corpus, _Past] = WeakKeyDictionary()


def _past(corpus: Corpus) -> _Past:
    """The past reports of a corpus; they live as long as it does."""
    found = _KEPT.get(corpus)
    if found is None:
        found = _KEPT[corpus] = _Past(corpus)
    return found


# -- The technique -----------------------------------------------------------------------------


class Dnnloc:
    """DNNLOC."""

    name = "dnnloc"

    def __init__(self, network: DnnLocModel) -> None:
        self._network = network
        self._codes: WeakKeyDictionary[Corpus, Floats] = WeakKeyDictionary()

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """The output of the combining network for each file, (documents,)."""
        network = self._network
        codes = self._codes.get(corpus)
        if codes is None:
            weights = file_weights(corpus, network.words)
            codes = self._codes[corpus] = network.file_codes(weights)
        report = network.report_code(report_counts(query, network.words))
        return network.combined(network.relevancies(report, codes), columns(query, corpus)[1])


@cache
def _card() -> Mapping[str, Any]:
    text = files(__package__).joinpath("dnnloc.json").read_text(encoding="utf-8")
    card: Mapping[str, Any] = json.loads(text)
    return card


@cache
def shipped() -> Dnnloc:
    """Return DNNLOC with the network of the package."""
    return Dnnloc(DnnLocModel.of(_card()["network"]))


def _training_projects() -> Collection[str]:
    projects: Mapping[str, int] = _card()["trained_on"]["projects"]
    return projects.keys()


METHOD = Method("dnnloc", shipped, uses_history=True, training_projects=_training_projects)
