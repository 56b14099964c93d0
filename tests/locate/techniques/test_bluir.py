"""BLUiR against the formulas of Saha et al. 2013, Section III."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques.bluir import BLUiR, indri_tf_idf

MakeCorpus = Callable[..., Corpus]

OTHERS = {"x.py": "other = 1\n", "y.py": "different = 2\n"}


def test_the_retrieval_model_is_indris() -> None:
    counts = np.array([[2, 0], [1, 3]], np.float32)
    lengths = np.array([2, 6], np.float32)
    queries = np.array([[1, 0], [0, 2]], np.float32)
    first, second = math.log(3 / 2.5), math.log(3 / 1.5)
    once, twice = 1000 / 1001, 2000 / 1002
    # The mean length is 4: k1 * (1 - b + b * length / 4) is 0.85 and 1.15.
    expected = [
        [first**2 * 2 / 2.85 * once, 0],
        [first**2 * 1 / 2.15 * once, second**2 * 3 / 4.15 * twice],
    ]
    assert indri_tf_idf(counts, lengths, queries) == pytest.approx(np.array(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("holder", "parts"),
    [
        ("class Trainer:\n    pass\n", 2),  # a class name is an identifier, too
        ("def trainer():\n    pass\n", 2),
        ("trainer = 0\n", 1),
        ("# trainer\n", 1),
        ('def f():\n    """Trainer."""\n', 1),
        ('"" + "trainer"\n', 0),
    ],
)
def test_each_part_of_a_file_counts_for_itself(
    corpus_of: MakeCorpus, holder: str, parts: int
) -> None:
    corpus = corpus_of({"a.py": holder, **OTHERS})
    alone = math.log(4 / 1.5) ** 2 * 1000 / 1001
    scores = BLUiR(b=0).scores(query_of(Report("trainer")), corpus)
    # With b = 0 a single occurrence weighs 1 / 2 in every part.
    assert scores == pytest.approx([parts * alone / 2, 0, 0])


def test_summary_and_description_are_searched_each(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of({"a.py": "trainer = 0\n", **OTHERS})
    once = BLUiR().scores(query_of(Report("trainer")), corpus)[0]
    both = BLUiR().scores(query_of(Report("trainer", "trainer")), corpus)[0]
    repeated = BLUiR().scores(query_of(Report("trainer trainer")), corpus)[0]
    assert both == pytest.approx(2 * once)
    assert repeated == pytest.approx(once * (2000 / 1002) / (1000 / 1001))
