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
from epochzero.locate.functions.context import FunctionContext
from epochzero.locate.functions.features import Candidates, features_of
from epochzero.locate.functions.ranker import CANDIDATES, chosen, placed
from epochzero.locate.index import Floats
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


def columns(
    corpus: Corpus, title: str, text: str = "", files: Floats | None = None
) -> dict[str, dict[str, float]]:
    """The features of all functions, by column and name."""
    query = query_of(Report(title, text))
    functions = Functions(corpus)
    scores = Combined().scores(query, corpus) if files is None else files
    context = FunctionContext(functions, query, corpus, scores, mentions(query, corpus))
    candidates = Candidates(context, chosen(context.guess))
    names, table = features_of(candidates)
    units = [unit.qualified for unit in candidates.units]
    return {
        name: dict(zip(units, values.tolist(), strict=True))
        for name, values in zip(names, table.T, strict=True)
    }


def test_what_a_frame_calls_is_known(corpus: Corpus) -> None:
    found = columns(corpus, "Crash", 'File "/x/src/train.py", line 9, in train')
    assert found["called_by_framed"]["step"] == 1
    assert found["called_by_framed"]["shuffle"] == 0
    assert found["frame_by_name"]["train"] == 1


def test_callers_and_callees_pass_on_what_is_thought_of_them(corpus: Corpus) -> None:
    found = columns(corpus, "make the optimizer step", "")
    assert found["callees_best"]["train"] > 0
    assert found["callers_best"]["step"] > 0
    assert found["callers_best"]["shuffle"] == 0


def test_a_method_knows_those_beside_it(corpus: Corpus) -> None:
    found = columns(corpus, "sample cut off in the middle of a shard")
    assert (
        found["beside_best"]["ShardReader.__init__"]
        > found["beside_best"]["ShardReader.read_shard"]
    )
    assert found["is_constructor"]["ShardReader.__init__"] == 1


def test_called_names_of_the_report_count_for_the_caller(corpus: Corpus) -> None:
    found = columns(corpus, "`make_optimizer` is not defined")
    assert found["calls_named_all"]["step"] == 1
    assert found["calls_named_all"]["train"] == 0


def test_the_scale_of_the_files_scores_does_not_matter(corpus: Corpus) -> None:
    scores = np.array([0.2, 0.5, 0.3], np.float32)
    one = columns(corpus, "the same order in all epochs", files=scores)
    other = columns(corpus, "the same order in all epochs", files=7 * scores - 3)
    for name, values in one.items():
        assert values == pytest.approx(other[name], abs=1e-4), name


def test_functions_beyond_the_candidates_stay_behind_in_the_order_of_the_guess() -> None:
    draw = np.random.default_rng(0)
    guess = draw.random(CANDIDATES + 50).astype(np.float32)
    rows = chosen(guess)
    predicted = draw.normal(0, 4, len(rows)).astype(np.float32)
    scores = placed(guess, rows, predicted)
    rest = np.setdiff1d(np.arange(len(guess)), rows)
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert scores[rows].min() > scores[rest].max()
    assert (np.argsort(scores[rest]) == np.argsort(guess[rest])).all()
    assert (np.argsort(scores[rows]) == np.argsort(predicted)).all()


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
