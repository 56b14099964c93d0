"""The trees give what walking them by hand gives, and every file gets a place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epochzero.locate.ranker import CANDIDATES, Trees, ranked

# guess <= 0.5: 1, else by size: 2 or 3
SMALL = [[0, 0.5, 1, 2], [1.0], [1, 10.0, 3, 4], [2.0], [3.0]]
STUMP = [[1, 3.0, 1, 2], [0.25], [0.5]]


def walk(nodes: list[list[float]], row: list[float]) -> float:
    node = nodes[0]
    while len(node) > 1:
        feature, threshold, left, right = node
        node = nodes[int(left if row[int(feature)] <= threshold else right)]
    return node[0]


@given(
    st.lists(
        st.lists(st.floats(0, 20, width=32, allow_nan=False), min_size=2, max_size=2),
        min_size=1,
        max_size=20,
    )
)
def test_the_trees_give_what_a_walk_gives(rows: list[list[float]]) -> None:
    trees = Trees.of(("guess", "size"), [SMALL, STUMP])
    found = trees.predict(np.array(rows, np.float32))
    assert np.allclose(found, [walk(SMALL, row) + walk(STUMP, row) for row in rows])


def test_files_beyond_the_candidates_stay_behind_in_the_order_of_the_guess() -> None:
    draw = np.random.default_rng(0)
    guess = draw.random(CANDIDATES + 50).astype(np.float32)
    table = np.stack([draw.random(len(guess)).astype(np.float32) * 20, guess], axis=1)
    trees = Trees.of(("guess", "size"), [SMALL, STUMP])
    scores = ranked(trees, ("size", "guess"), table)
    order = np.argsort(-guess, kind="stable")
    first, rest = order[:CANDIDATES], order[CANDIDATES:]
    assert scores[first].min() > scores[rest].max()
    assert (np.diff(scores[rest]) <= 0).all()
    assert np.allclose(scores[first], trees.predict(table[first][:, [1, 0]]))
