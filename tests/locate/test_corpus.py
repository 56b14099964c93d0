"""What a corpus does with a query that is too large for it."""

from __future__ import annotations

import pytest

from epochzero.locate import corpus as module
from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

NOISE = "\n".join(f"lorem{n} ipsum{n} dolor{n}" for n in range(2000))
REPORT = Report("The shard was cut off", f"{NOISE}\n`read_shard` raises\n{NOISE}")


def test_a_query_that_fits_is_left_alone(corpus: Corpus) -> None:
    query = query_of(REPORT)
    assert len(query.terms) > 2000
    assert corpus.narrowed(query) is query


def test_of_a_query_that_does_not_fit_the_telling_words_stay(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 8 * len(corpus))
    monkeypatch.setattr(module, "FEWEST_WORDS", 4)
    query = corpus.narrowed(query_of(REPORT))
    assert {"shard", "read_shard", "cut"} <= set(query.terms)
    assert len(query.terms) == len(query.weights) == len(query.hashes) == 8
    assert "read_shard" in query.identifiers["all"]
    assert len(query.identifiers["all"]) <= 8
    assert len(query.phrases) <= 8
    assert query.report is REPORT
    assert corpus.find(query).fields["whole"].shape == (len(corpus), 8)
