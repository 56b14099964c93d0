"""The index finds what a plain count of words finds, and BM25 is what its formula says."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code.parse import parse
from epochzero.code.words import hashes, words
from epochzero.locate.index import Index, Sets, bm25

NAMES = st.sampled_from(["alpha", "beta", "gamma_delta", "run", "LossFn"])
FILES = st.lists(st.lists(NAMES, max_size=8), min_size=1, max_size=5)


def source(names: list[str]) -> bytes:
    return "".join(f"def {name}(x):\n    return {name}(x)\n" for name in names).encode()


@given(FILES, st.lists(NAMES, min_size=1, max_size=3))
def test_counts_are_those_of_the_text(files: list[list[str]], asked: list[str]) -> None:
    texts = [source(names) for names in files]
    index = Index([parse(text, f"f{n}.py") for n, text in enumerate(texts)])
    terms = sorted({w for name in asked for w in words(name)}, key=lambda w: int(hashes([w])[0]))
    found = index.find(hashes(terms))
    for number, text in enumerate(texts):
        counted = Counter(words(text.decode()))
        assert found.fields["whole"][number].tolist() == [counted[term] for term in terms]
        assert found.lengths["whole"][number] == sum(counted.values())
    units = Counter(zip(found.unit.tolist(), found.word.tolist(), strict=True))
    assert all(often == 1 for often in units.values())
    assert index.unit_first[-1] == sum(len(names) for names in files)


def test_bm25_by_hand() -> None:
    counts = np.array([[2, 0], [1, 1], [0, 0]], np.float32)
    lengths = np.array([4, 2, 6], np.float32)
    scores = bm25(counts, lengths, np.ones((2, 1), np.float32), k1=1.2, b=0.5)[:, 0]

    def term(count: float, length: float, df: int) -> float:
        idf = math.log(1 + (3 - df + 0.5) / (df + 0.5))
        return idf * count / (count + 1.2 * (0.5 + 0.5 * length / 4))

    assert np.allclose(scores, [term(2, 4, 2), term(1, 2, 2) + term(1, 2, 1), 0], atol=1e-6)


@given(st.lists(st.sets(st.integers(0, 300)), min_size=1, max_size=6), st.sets(st.integers(0, 300)))
def test_sets_know_who_holds_what(held: list[set[int]], asked: set[int]) -> None:
    arrays = [np.array(sorted(each), np.uint32) for each in held]
    wanted = np.array(sorted(asked), np.uint32)
    found = Sets(arrays).holders(wanted)
    assert found.tolist() == [[n in each for n in sorted(asked)] for each in held]
