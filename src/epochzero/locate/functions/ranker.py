"""The learned ranking of functions: boosted regression trees over the features, trained to rank.

LambdaMART (Burges, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82), as for
files. ``functions.json`` was made by ``bench/train_functions.py``; it states its training data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files as resources
from typing import TYPE_CHECKING

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.functions.context import FunctionContext, shares
from epochzero.locate.functions.features import Candidates, features_of
from epochzero.locate.functions.table import FunctionTable
from epochzero.locate.index import Floats
from epochzero.locate.mentions import Mention
from epochzero.locate.query import Query
from epochzero.locate.ranker import Trees

if TYPE_CHECKING:
    from numpy.typing import NDArray


CANDIDATES = 300
"""So many functions of the first guess are ranked by the trees; the rest stays behind them, in the
order of the guess."""


class Functions(FunctionTable):
    """The functions and methods of a corpus, ranked for reports."""

    def scores(
        self, query: Query, corpus: Corpus, files: Floats, mentioned: Sequence[Mention]
    ) -> Floats:
        """How likely each function holds the bug; above 0, higher is likelier, (functions,).

        Args:
            query: what to search for.
            corpus: the one given to the constructor, with what was known at that time.
            files: the score of each file by any technique, (documents,).
            mentioned: which files the report names.
        """
        if not self.units:
            return np.zeros(0, np.float32)
        context = FunctionContext(self, query, corpus, files, mentioned)
        rows = chosen(context.guess)
        names, table = features_of(Candidates(context, rows))
        trees = _shipped()
        place = {name: number for number, name in enumerate(names)}
        predicted = trees.predict(table[:, [place[name] for name in trees.names]])
        return placed(context.guess, rows, predicted)


def chosen(guess: Floats) -> NDArray[np.int64]:
    """The rows of the likeliest functions by the first guess: sorted."""
    return np.sort(np.argsort(-guess, kind="stable")[:CANDIDATES])


def placed(guess: Floats, rows: NDArray[np.int64], predicted: Floats) -> Floats:
    """Scores of all functions: between 0 and 1, the candidates before the others.

    Args:
        guess: the first guess of all, (functions,).
        rows: the candidates.
        predicted: what the trees give them, (candidates,).
    """
    scores = np.empty(len(guess), np.float32)
    sure = 1 / (1 + np.exp(-predicted.astype(np.float64)))
    scores[:] = shares(guess) * (sure.min() / 2)
    scores[rows] = sure
    return scores


@cache
def _shipped() -> Trees:
    """The model of the package."""
    text = resources("epochzero.locate").joinpath("functions.json").read_text(encoding="utf-8")
    raw = json.loads(text)
    return Trees.of(raw["features"], raw["trees"])
