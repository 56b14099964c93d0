"""DNNLOC: the features against Lam et al. 2017, Section IV, and the networks that combine them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code import History, Repository
from epochzero.code.parse import parse
from epochzero.code.words import hashes
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import query_of
from epochzero.locate.report import PastReport, Report
from epochzero.locate.techniques import TECHNIQUES
from epochzero.locate.techniques.dnnloc import (
    COLUMNS,
    SPACES,
    DenseLayer,
    Dnnloc,
    DnnLocModel,
    columns,
    file_weights,
    report_counts,
)

if TYPE_CHECKING:
    from conftest import Made

MakeCorpus = Callable[..., Corpus]

JUNE_15 = 1_592_179_200
"""2020-06-15T00:00:00Z."""
DAY = 24 * 3600

FILES = {
    "reader.py": "class ShardReader:\n    size = 1\n",
    "train.py": "import torch\n\n# one epoch after another\ndef run(loss):\n    loss.backward()\n",
    "model.py": "layer = 'a hidden layer'\n",
}


def column(name: str, report: Report, corpus: Corpus) -> list[float]:
    names, table = columns(query_of(report), corpus)
    found: list[float] = table[:, names.index(name)].tolist()
    return found


# -- Features ----------------------------------------------------------------------------------


@pytest.fixture
def history(made: Made) -> History:
    """Fixes of a.py in January and March, of b.py in June of 2020; c.py was never fixed."""
    for days, message, changed in [
        (-400, "Begin", "abc"),
        (-150, "Fix a crash", "a"),
        (-100, "Fix it again", "a"),
        (-50, "Add a feature", "ac"),
        (-10, "Fix a wrong shape", "b"),
        (+10, "Fix what is reported", "c"),
    ]:
        made.clock = JUNE_15 + days * DAY
        for name in changed:
            made.write(f"{name}.py", f"{name} = {days}\n")
        made.commit(message)
    return History(Repository(made.folder))


NAMED = {"a.py": "a = 1\n", "b.py": "b = 1\n", "c.py": "c = 1\n"}


def test_recency_is_the_inverse_of_the_months_since_the_last_fix(
    corpus_of: MakeCorpus, history: History
) -> None:
    report = Report("fails", opened=JUNE_15)
    # March to June; June itself; what is fixed after the report does not count.
    assert column("recency", report, corpus_of(NAMED, history)) == pytest.approx([1 / 4, 1, 0])


def test_months_are_those_of_the_calendar(corpus_of: MakeCorpus, history: History) -> None:
    july_1 = Report("fails", opened=JUNE_15 + 16 * DAY)
    assert column("recency", july_1, corpus_of(NAMED, history)) == pytest.approx(
        [1 / 5, 1 / 2, 1 / 2]
    )


def test_frequency_counts_fixes_before_the_report(corpus_of: MakeCorpus, history: History) -> None:
    report = Report("fails", opened=JUNE_15)
    assert column("frequency", report, corpus_of(NAMED, history)) == pytest.approx([1, 1 / 2, 0])


def test_a_report_without_a_date_comes_after_all_changes(
    corpus_of: MakeCorpus, history: History
) -> None:
    assert column("recency", Report("fails"), corpus_of(NAMED, history))[2] == 1


def test_the_past_reports_of_a_file_are_compared_as_one_text(corpus_of: MakeCorpus) -> None:
    words = {"a.py": "shape\n", "b.py": "loss\n", "c.py": "epoch\n", "d.py": "layer\n"}

    def past(text: str, *fixed: str) -> PastReport:
        return PastReport(Report(text), 0.0, fixed)

    corpus = corpus_of(
        words, past=[past("shape", "a.py", "gone.py"), past("loss", "a.py"), past("epoch", "b.py")]
    )
    # Of a.py's text, two words of equal weight, the report has one, and it is half of the report;
    # it is the whole text of b.py, which is shorter.
    a = 1 / 2 / (1 + math.exp(-1))
    b = math.sqrt(1 / 2) / (1 + math.exp(0))
    found = column("collaborative", Report("shape epoch"), corpus)
    assert found == pytest.approx([1, b / a, 0, 0])


def test_names_of_classes_count_where_the_report_mentions_them(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(FILES | {"saver.py": "class Saver:\n    pass\n"})
    found = column("class_names", Report("reading fails", "in `ShardReader`"), corpus)
    assert found[0] > 0
    assert found[1:] == [0, 0, 0]


def test_prose_that_names_no_class_has_no_class_names(corpus_of: MakeCorpus) -> None:
    report = Report("reading fails", "a shard is cut off")
    assert column("class_names", report, corpus_of(FILES)) == [0, 0, 0]


@given(st.text(max_size=200), st.text(max_size=400))
def test_features_are_between_0_and_1(title: str, text: str) -> None:
    parsed = [parse(source.encode(), path) for path, source in FILES.items()]
    past = [PastReport(Report(text, title), 0.0, ("train.py",))]
    names, table = columns(query_of(Report(title, text)), Corpus(list(FILES), parsed, None, past))
    assert names == COLUMNS
    assert table.shape == (len(FILES), len(COLUMNS))
    assert ((table >= 0) & (table <= 1 + 1e-6)).all()


# -- Words -------------------------------------------------------------------------------------


def vocabulary(*words: str) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.sort(hashes(words))


def test_words_of_a_file_are_told_apart_by_where_they_stand(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(FILES)
    where = {
        word: {
            (corpus.paths[number], space)
            for space, weights in file_weights(corpus, vocabulary(word)).items()
            for number in np.flatnonzero(weights[:, 0]).tolist()
        }
        for word in ("torch", "backward", "epoch", "hidden")
    }
    assert ("train.py", "apis") in where["torch"]
    assert ("train.py", "apis") in where["backward"]
    assert where["epoch"] == {("train.py", "comments")}
    assert where["hidden"] == {("model.py", "comments")}


def test_a_word_weighs_by_how_often_it_occurs_and_in_how_few_files(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of({"a.py": "loss\nloss\nshape\n", "b.py": "shape\n", "c.py": ""})
    weights = file_weights(corpus, hashes(["loss", "shape"]))["identifiers"]
    expected = [(math.log(2) + 1) * math.log(3), math.log(3 / 2)]
    assert weights[0] == pytest.approx(expected)


def test_words_of_title_and_text_are_counted_together() -> None:
    counts = report_counts(query_of(Report("loss", "loss shape")), hashes(["loss", "shape", "no"]))
    assert counts.tolist() == [2, 1, 0]


# -- The network -------------------------------------------------------------------------------

WORDS = ("loss", "shape", "epoch", "layer", "hidden")


def random_network(seed: int = 0, dimensions: int = 3) -> DnnLocModel:
    draw = np.random.default_rng(seed)

    def layer(inputs: int, outputs: int) -> DenseLayer:
        size = (inputs, outputs)
        return DenseLayer(draw.normal(size=size).astype(np.float32), np.zeros(outputs, np.float32))

    return DnnLocModel(
        vocabulary(*WORDS),
        np.ones(len(WORDS), np.float32),
        {space: layer(len(WORDS), dimensions) for space in ("report", *SPACES)},
        (layer(dimensions * (1 + len(SPACES)), 4), layer(4, 1)),
        (layer(1 + len(COLUMNS), 4), layer(4, 1)),
    )


def test_the_score_is_a_network_of_the_relevancy_and_the_features(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(FILES)
    query = query_of(Report("the loss of an epoch", "and a hidden layer"))
    network = random_network()

    def forward(layers: tuple[DenseLayer, DenseLayer], inputs: Floats) -> Floats:
        hidden = np.tanh(inputs @ layers[0].weights + layers[0].bias)
        return np.asarray(1 / (1 + np.exp(-(hidden @ layers[1].weights + layers[1].bias))))[:, 0]

    def projected(space: str, weights: Floats) -> Floats:
        lengths = np.linalg.norm(weights, axis=1, keepdims=True)
        unit = weights / np.where(lengths > 0, lengths, 1)
        return np.tanh(unit @ network.encoders[space].weights)

    counts = report_counts(query, network.words)
    said = np.where(counts > 0, np.log(counts.clip(1)) + 1, 0)[None]
    weights = file_weights(corpus, network.words)
    codes = [projected("report", said).repeat(len(FILES), axis=0)]
    codes += [projected(space, weights[space]) for space in SPACES]
    relevancy = forward(network.relevancy, np.hstack(codes))
    expected = forward(network.combination, np.column_stack([relevancy, columns(query, corpus)[1]]))
    assert Dnnloc(network).scores(query, corpus) == pytest.approx(expected, rel=1e-4)


def test_a_network_survives_its_file() -> None:
    network = random_network()
    again = DnnLocModel.of(json.loads(json.dumps(network.as_json())))
    assert again.words.tolist() == network.words.tolist()
    for before, after in zip(network.relevancy, again.relevancy, strict=True):
        step = float(np.abs(before.weights).max()) / 127
        assert after.weights == pytest.approx(before.weights, abs=step)
    assert DnnLocModel.of(again.as_json()).as_json() == again.as_json()


def test_one_corpus_can_be_asked_twice(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(FILES)
    technique = Dnnloc(random_network())
    first, other = query_of(Report("the loss")), query_of(Report("a hidden layer"))
    before = technique.scores(first, corpus).tolist()
    assert technique.scores(other, corpus).tolist() != before
    assert technique.scores(first, corpus).tolist() == before


def test_the_model_of_the_package_is_small_and_says_where_it_comes_from() -> None:
    model = files("epochzero.locate.techniques").joinpath("dnnloc.json")
    text = model.read_text(encoding="utf-8")
    assert len(text) < 500_000
    card = json.loads(text)
    assert card["trained_on"]["bugs"] == sum(card["trained_on"]["projects"].values())
    assert card["never"]


def test_of_two_files_alike_in_all_else_the_one_with_the_report_s_words_comes_first(
    corpus_of: MakeCorpus,
) -> None:
    corpus = corpus_of({"a.py": "def quantize(x): ...\n", "b.py": "def normalize(x): ...\n"})
    scores = TECHNIQUES["dnnloc"].make().scores(query_of(Report("quantize is wrong")), corpus)
    assert scores[0] > scores[1]
