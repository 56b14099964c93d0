"""What the features of one query share: counts, scores of fields, and a first guess."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.features.mentions import mentioned, mentions
from epochzero.locate.index import Columns, Floats, SearchResult, bm25
from epochzero.locate.query import PARTS, Query

ALL, SUMMARY = PARTS.index("all"), PARTS.index("summary")


def share(scores: Floats) -> Floats:
    """Scores as a share of the best; zeros where none is positive."""
    best = float(scores.max()) if len(scores) else 0.0
    return np.asarray(scores / best if best > 0 else scores * 0, np.float32)


def ranks(scores: Floats) -> Floats:
    """The rank of each score, the highest being 0."""
    found = np.empty(len(scores), np.float32)
    found[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return found


class Context:
    """A query against a corpus.

    Args:
        query: the report, taken apart.
        corpus: where to look.
        opened: when the report was opened, in seconds since the epoch; for ages in the history.
    """

    def __init__(self, query: Query, corpus: Corpus, opened: float) -> None:
        self.query = query
        self.corpus = corpus
        self.opened = opened
        self.found: SearchResult = corpus.find(query)

    @property
    def size(self) -> int:
        """How many files there are."""
        return len(self.corpus)

    @cached_property
    def path_counts(self) -> Floats:
        """How often each word occurs in each path."""
        return self.corpus.path_counts(self.query)

    def counts(self, field: str) -> tuple[Floats, Floats]:
        """Counts and lengths of a field; those of text and card with the words of the path."""
        counts, lengths = self.found.fields[field], self.found.lengths[field]
        if field in ("whole", "card"):
            return counts + self.path_counts, lengths + self.corpus.path_lengths
        return counts, lengths

    @cached_property
    def field_scores(self) -> Mapping[str, Floats]:
        """BM25 of each part of the query against each field, (files, parts), by field."""
        scores = {
            field: bm25(*self.counts(field), self.query.weights) for field in self.found.fields
        }
        scores["path"] = bm25(self.path_counts, self.corpus.path_lengths, self.query.weights)
        return scores

    @cached_property
    def unit_scores(self) -> Floats:
        """BM25 of each part of the query against each function and class, (units, parts)."""
        found, lengths = self.found, self.corpus.index.unit_lengths
        n = len(lengths)
        if not n or not len(found.unit):
            return np.zeros((n, len(PARTS)), np.float32)
        df = np.bincount(found.word, minlength=len(self.query.terms))
        idf = np.log1p((n - df + 0.5) / (df + 0.5))
        soft = 1.5 * (0.25 + 0.75 * lengths[found.unit] / max(float(lengths.mean()), 1.0))
        value = found.count / (found.count + soft) * idf[found.word]
        columns = [
            np.bincount(found.unit, value * self.query.weights[found.word, part], minlength=n)
            for part in range(len(PARTS))
        ]
        return np.stack(columns, axis=1).astype(np.float32)

    @cached_property
    def best_units(self) -> Floats:
        """The best score of the units of each file, (files, parts)."""
        best = np.zeros((self.size, len(PARTS)), np.float32)
        np.maximum.at(best, self.corpus.index.unit_document, self.unit_scores)
        return best

    @cached_property
    def mentions(self) -> Columns:
        """How the report names each file."""
        return mentions(self.query, self.corpus)

    @cached_property
    def mentioned(self) -> Floats:
        """How surely it does: in a frame, by its path, or as a module; 0 to 1."""
        return mentioned(self.mentions)

    @cached_property
    def guess(self) -> Floats:
        """A first ranking by hand-set weights, which others build on: text, title, card, best unit
        and mention.
        """
        whole, card = self.field_scores["whole"], self.field_scores["card"]
        return np.asarray(
            share(whole[:, ALL])
            + 0.3 * share(whole[:, SUMMARY])
            + 0.25 * (share(card[:, ALL]) + share(card[:, SUMMARY]))
            + 0.3 * share(self.best_units[:, ALL])
            + 0.4 * self.mentioned,
            np.float32,
        )
