"""Functions ranked for a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code.parse import parse
from epochzero.locate.corpus import Corpus
from epochzero.locate.functions import Functions
from epochzero.locate.mentions import mentions
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques.combined import Combined


def scored(corpus: Corpus, title: str, text: str = "") -> dict[str, float]:
    query = query_of(Report(title, text))
    functions = Functions(corpus)
    files = Combined().scores(query, corpus)
    scores = functions.scores(query, corpus, files, mentions(query, corpus))
    names = [unit.qualified for unit in functions.units]
    return dict(zip(names, scores.tolist(), strict=True))


def ranked(corpus: Corpus, title: str, text: str = "") -> list[str]:
    scores = scored(corpus, title, text)
    return sorted(scores, key=lambda name: -scores[name])


def test_methods_and_functions_are_ranked_but_no_classes(corpus: Corpus) -> None:
    names = set(ranked(corpus, "anything"))
    assert {"ShardReader.read_shard", "shuffle", "train", "Network.forward"} <= names
    assert "ShardReader" not in names


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("sample cut off in the middle of a shard", "", "ShardReader.read_shard"),
        ("samples have the same order in all epochs", "", "shuffle"),
        ("shuffle() does nothing", "", "shuffle"),
        ("Crash", 'File "/x/src/train.py", line 12, in step', "step"),
        # The numbers of another version may be off; the function's name is not.
        ("Crash", 'File "/x/src/train.py", line 999, in step', "step"),
        ("Network is None", "in `forward`", "Network.forward"),
    ],
)
def test_the_function_is_found(corpus: Corpus, title: str, text: str, expected: str) -> None:
    assert ranked(corpus, title, text)[0] == expected


def test_the_innermost_frame_counts_most(corpus: Corpus) -> None:
    frames = [
        f'File "/x/src/data/loader.py", line 999, in {name}' for name in ("shuffle", "read_shard")
    ]
    outer = scored(corpus, "Crash", "\n".join(frames))
    inner = scored(corpus, "Crash", "\n".join(reversed(frames)))
    assert inner["shuffle"] > outer["shuffle"]
    assert inner["ShardReader.read_shard"] < outer["ShardReader.read_shard"]


def test_a_repeated_name_says_less(make_corpus: Callable[[Mapping[str, str]], Corpus]) -> None:
    corpus = make_corpus(
        {
            "a.py": "def run():\n    pass\n",
            "b.py": "def run():\n    pass\n",
            "c.py": "def run_all():\n    pass\n",
        }
    )
    assert ranked(corpus, "Crash", "`run_all` after `run`")[0] == "run_all"


def test_files_without_functions(make_corpus: Callable[[Mapping[str, str]], Corpus]) -> None:
    corpus = make_corpus({"a.py": "value = 1\n"})
    assert ranked(corpus, "value") == []


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_report_gives_a_number_for_each_function(title: str, text: str) -> None:
    source = b"class A:\n    def b(self):\n        return self.c\n\ndef d():\n    raise ValueError('e')\n"
    corpus = Corpus(["m/a.py", "empty.py"], [parse(source, "m/a.py"), parse(b"", "empty.py")])
    query = query_of(Report(title, text))
    functions = Functions(corpus)
    files = np.zeros(2, np.float32)
    scores = functions.scores(query, corpus, files, mentions(query, corpus))
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()
