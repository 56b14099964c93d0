"""The vector space: rarity, lengths and counts of words, whatever the documents hold."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code import Bag
from epochzero.code.words import hashes
from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques.vectors import (
    Postings,
    asked,
    cosine,
    length_boost,
    scaled,
    vectors_of,
)

MakeCorpus = Callable[..., Corpus]

WORDS = ["loss", "tensor", "shape", "grad", "epoch"]
DOCUMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), max_size=6)


@given(DOCUMENTS)
def test_postings_know_how_often_each_word_stands_where(documents: list[list[str]]) -> None:
    postings = Postings.of([Bag.of(document) for document in documents])
    asking = sorted([*WORDS, "absent"], key=lambda word: int(hashes([word])[0]))
    expected = [[document.count(word) for word in asking] for document in documents]
    assert postings.counts(hashes(asking)).tolist() == expected
    assert postings.lengths.tolist() == [len(document) for document in documents]


@given(DOCUMENTS)
def test_a_word_is_as_rare_as_documents_hold_it(documents: list[list[str]]) -> None:
    idf = Postings.of([Bag.of(document) for document in documents]).idf()
    for word, value in zip(WORDS, idf.of(hashes(WORDS)), strict=True):
        holding = sum(word in document for document in documents)
        assert value == pytest.approx(math.log(len(documents) / holding) if holding else 0)


@given(DOCUMENTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_the_cosine_is_that_of_the_paper(documents: list[list[str]], query: list[str]) -> None:
    postings = Postings.of([Bag.of(document) for document in documents])
    idf = postings.idf()
    known = hashes(WORDS)
    counts = np.array([[query.count(word)] for word in WORDS], np.float32)
    found = cosine(postings.counts(known), postings.norms(idf), counts, idf.of(known))
    assert found[:, 0] == pytest.approx(
        [by_hand(document, query, documents) for document in documents], abs=1e-5
    )


def by_hand(document: list[str], query: list[str], documents: list[list[str]]) -> float:
    """Zhou et al. 2012, Section III, word by word."""

    def weight(text: list[str], word: str) -> float:
        holding = sum(word in other for other in documents)
        if word not in text or not holding:
            return 0
        return (math.log(text.count(word)) + 1) * math.log(len(documents) / holding)

    lengths = [math.sqrt(sum(weight(t, w) ** 2 for w in WORDS)) for t in (document, query)]
    product = sum(weight(document, word) * weight(query, word) for word in WORDS)
    return product / math.prod(lengths) if all(lengths) else 0


def test_scores_are_scaled_to_the_whole_of_0_to_1() -> None:
    assert scaled(np.array([3, 1, 2], np.float32)).tolist() == [1, 0, 0.5]
    assert scaled(np.array([2, 2], np.float32)).tolist() == [0, 0]
    assert scaled(np.zeros(0, np.float32)).tolist() == []


def test_the_boost_of_a_length_is_logistic_from_the_shortest_to_the_longest() -> None:
    boost = length_boost(np.array([10, 30, 20], np.float32))
    assert boost == pytest.approx([0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-0.5))])


def test_summary_and_description_are_told_apart() -> None:
    query = query_of(Report("Loss of loss", "loss tensor"))
    counts = dict(zip(query.terms, asked(query).tolist(), strict=True))
    assert counts == {"loss": [2, 1], "tensor": [0, 1]}


def test_vectors_are_made_once_and_do_not_keep_their_corpus(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of({"a.py": "loss = 1\n"})
    assert vectors_of(corpus) is vectors_of(corpus)
    gone = weakref.ref(corpus)
    del corpus
    gc.collect()
    assert gone() is None
