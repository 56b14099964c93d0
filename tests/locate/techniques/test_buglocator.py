"""BugLocator against the formulas of Zhou et al. 2012, Section III."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import PastReport, Report
from epochzero.locate.techniques.buglocator import BugLocator, rvsm

MakeCorpus = Callable[..., Corpus]

FILES = {
    "a.py": "tensor\n" * 2 + "loss\n",
    "b.py": "loss\n" + "shape\n" * 4,
    "c.py": "epoch\n",
}
TENSOR = query_of(Report("tensor tensor"))


def past(text: str, *fixed: str) -> PastReport:
    return PastReport(Report(text), 0.0, fixed)


def test_rvsm_is_the_cosine_times_the_boost_of_the_length(corpus_of: MakeCorpus) -> None:
    found = rvsm(TENSOR, corpus_of(FILES))
    # a.py: tensor twice in one file of three, loss once in two of three; 3 words of 1 to 5.
    tensor = (math.log(2) + 1) * math.log(3)
    loss = math.log(3 / 2)
    boost = 1 / (1 + math.exp(-0.5))
    assert found == pytest.approx([boost * tensor / math.hypot(tensor, loss), 0, 0])


def test_of_equally_similar_files_the_longer_one_comes_first(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of({"short.py": "tensor\n", "long.py": "tensor\n" * 9, "c.py": "epoch\n"})
    short, long, _ = rvsm(TENSOR, corpus)
    assert long > short > 0


def test_similar_reports_lead_to_what_they_changed_shared_among_it(corpus_of: MakeCorpus) -> None:
    reports = [
        past("gradient overflow", "b.py"),
        past("gradient overflow", "a.py", "c.py", "gone.py"),
        past("unrelated words", "c.py"),
    ]
    query = query_of(Report("gradient overflow"))
    scores = BugLocator().scores(query, corpus_of(FILES, past=reports))
    # Both reports have a cosine of 1. Two of the files of the second are still there, so that a.py
    # and c.py have half of b.py, the highest and the lowest; nothing matches the text of a file.
    assert scores == pytest.approx([0, 0.2, 0])
    assert BugLocator(alpha=0.5).scores(query, corpus_of(FILES, past=reports))[1] == pytest.approx(
        0.5
    )


def test_text_and_similar_reports_are_weighed_by_alpha(corpus_of: MakeCorpus) -> None:
    reports = [past("tensor", "c.py"), past("unrelated words", "b.py")]
    scores = BugLocator(alpha=0.3).scores(TENSOR, corpus_of(FILES, past=reports))
    assert scores == pytest.approx([0.7, 0, 0.3])


def test_without_past_reports_it_ranks_as_rvsm(corpus_of: MakeCorpus) -> None:
    query = query_of(Report("loss shape tensor"))
    corpus = corpus_of(FILES)
    own = rvsm(query, corpus)
    assert np.argsort(BugLocator().scores(query, corpus)).tolist() == np.argsort(own).tolist()


def test_the_same_corpus_answers_each_query_for_itself(corpus_of: MakeCorpus) -> None:
    corpus: Corpus = corpus_of(FILES)
    tops = [
        int(BugLocator().scores(query_of(Report(word)), corpus).argmax())
        for word in ("epoch", "shape", "tensor", "epoch")
    ]
    assert tops == [2, 1, 0, 2]
