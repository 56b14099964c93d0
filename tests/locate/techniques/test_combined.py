"""The hand-weighted sum."""

from __future__ import annotations

import numpy as np
import pytest

from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques.combined import Combined


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("shard was cut off", "", "src/data/loader.py"),
        ("Network.forward fails", "", "src/model.py"),
        # What is named outweighs a few common words.
        ("shards and samples", 'File "/x/src/train.py", line 12, in step', "src/train.py"),
    ],
)
def test_the_file_is_found(corpus: Corpus, title: str, text: str, expected: str) -> None:
    scores = Combined().scores(query_of(Report(title, text)), corpus)
    assert corpus.paths[int(np.argmax(scores))] == expected


def test_nothing_in_common_is_zero(corpus: Corpus) -> None:
    assert not Combined().scores(query_of(Report("unrelated")), corpus).any()
