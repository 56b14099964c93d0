"""bjXnet: a network that reads the report as text and the code as a code property graph.

J. Han, C. Huang, S. Sun, Z. Liu, J. Liu: "bjXnet: an improved bug localization model based on code
property graph and attention mechanism", Automated Software Engineering 30, 2023. Known here by what
According to Jahan et al. (EMSE 2025) and their replication package: a text network of filters over 3, 4
and 5 words, a gated graph network of 3 steps over the graph, attention, the cosine. What differs, and
why:

- Nodes are statements (`epochzero.code.graph`), at most 400 of a file; those of Joern's graphs, which
  the package takes, are expressions.
- Words are rows of a table of 4,096 by their hash and not GloVe's, and reports and code share them,
  so that a repository never seen has an embedding for each of its names.
- Each word of the report attends to the nodes, in addition to the report as a whole; with the whole alone,
  trained across projects, hardly any file is found.
- One network serves all projects, and every file of a project is ranked, not a sample.
- The states of nodes are 48 wide and not 128, for the time: all files are read for each report.
- The loss compares the files of one bug (`epochzero.locate.techniques.bjxnet.network.fit`).

What it finds is owed to the words that report and code share. Hundreds of bugs teach it nothing beyond that:
on 42 bugs of the development half its MAP was 0.51 before training, 0.49 after two epochs and 0.47
after six (``bench/bjxnet.py --development --bugs 3 --learn 12 --epochs N``).

It needs the extra ``torch``. ``bjxnet.npz`` was made by ``bench/bjxnet.py``, and its card says on what
it was trained and on what never.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from epochzero.code.graph import CodeGraph, graph_of
from epochzero.errors import InputError
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import Query
from epochzero.locate.techniques.base import Method
from epochzero.locate.techniques.bjxnet.graphs import FileGraph, numbered, report_words

if TYPE_CHECKING:
    from epochzero.locate.techniques.bjxnet.network import BjxNet


CARD = "card"
"""Name of the array with the description of the training data, as JSON in UTF-8."""


class BJXNet:
    """The technique with one network."""

    name = "bjxnet"

    def __init__(self, network: BjxNet) -> None:
        self._network = network
        self._graphs: WeakKeyDictionary[Corpus, list[FileGraph]] = WeakKeyDictionary()

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """The score of every file, a cosine; a file without code has the least.

        Raises:
            InputError: the corpus has no text at hand, or a file cannot be read.
        """
        report = report_words(query)
        if not len(report):
            return np.zeros(len(corpus), np.float32)
        if corpus not in self._graphs:
            self._graphs[corpus] = _graphs(corpus)
        return self._network.ranked(report, self._graphs[corpus])


def _graphs(corpus: Corpus) -> list[FileGraph]:
    graphs = [numbered(CodeGraph.empty())] * len(corpus)
    for number, content in corpus.contents():
        graphs[number] = numbered(graph_of(content, corpus.paths[number]))
    return graphs


@cache
def shipped() -> BJXNet:
    """The technique with the weights of the package.

    Raises:
        InputError: PyTorch is not installed.
    """
    try:
        from epochzero.locate.techniques.bjxnet.network import BjxNet
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InputError(
            "the method bjxnet requires PyTorch, which is not installed: pip install 'epochzero[torch]'"
        ) from error
    weights = files(__package__).joinpath("bjxnet.npz")
    with weights.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return BJXNet(BjxNet.of({name: arrays[name] for name in arrays.files if name != CARD}))


def _training_projects() -> Collection[str]:
    weights = files(__package__).joinpath("bjxnet.npz")
    with weights.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        card = json.loads(arrays[CARD].tobytes())
    projects: Mapping[str, int] = card["trained_on"]["projects"]
    return projects.keys()


METHOD = Method("bjxnet", shipped, training_projects=_training_projects, extra="torch")
