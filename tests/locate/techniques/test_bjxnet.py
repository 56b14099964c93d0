"""bjXnet: what its network learns, that its weights are there, and that nothing else needs PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pytest

from epochzero.code import Repository
from epochzero.code.graph import graph_of
from epochzero.errors import InputError
from epochzero.locate import METHODS, Locator
from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques.bjxnet import CARD, shipped
from epochzero.locate.techniques.bjxnet.graphs import FileGraph, numbered, report_words
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from conftest import Made

pytest.importorskip("torch")

import torch

from epochzero.locate.techniques.bjxnet.network import BjxNet, NetworkSize, TrainingBug, fit

# What is said of each part, and how its code calls it: no word is in both.
PARTS = {
    "optimizer": (["diverges", "learning", "slow"], ["step", "momentum", "decay"]),
    "loader": (["missing", "samples", "shuffled"], ["batch", "worker", "prefetch"]),
    "saver": (["resume", "lost", "restart"], ["checkpoint", "state", "dump"]),
}
SMALL = NetworkSize(width=16, state=8, filters=8)


def report(said: Sequence[str]) -> np.ndarray:
    return report_words(query_of(Report(" ".join(said))))


def code(called: Sequence[str], extra: str = "x") -> FileGraph:
    first, second, third = called
    text = f"def {first}({extra}):\n    if {extra}:\n        {second}({extra})\n    {third}()\n"
    return numbered(graph_of(text.encode(), "a.py"))


def example(part: str, extra: str) -> TrainingBug:
    said, _ = PARTS[part]
    graphs = [code(called, extra) for _, called in PARTS.values()]
    return TrainingBug(report([extra, *said]), graphs, np.array([name == part for name in PARTS]))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Networks this small are slower on several threads, much so where others use the processors."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def learned(_one_thread: None) -> BjxNet:
    examples = [example(part, f"name{n}") for part in PARTS for n in range(12)]
    return fit(examples, epochs=12, seed=1, size=SMALL)


def first(network: BjxNet, asked: TrainingBug) -> int:
    return int(network.ranked(asked.report, asked.graphs).argmax())


def test_training_tells_the_right_file_from_the_wrong_ones(learned: BjxNet) -> None:
    for number, part in enumerate(PARTS):
        assert first(learned, example(part, "unseen")) == number


def test_training_is_the_same_each_time() -> None:
    examples = [example(part, "x") for part in PARTS]
    one, other = (fit(examples, epochs=2, seed=3, size=SMALL).arrays() for _ in range(2))
    assert all((one[name] == other[name]).all() for name in one)


def test_weights_survive_being_stored_in_half_precision(learned: BjxNet) -> None:
    again = BjxNet.of(learned.arrays())
    assert again.size.width == SMALL.width
    for number, part in enumerate(PARTS):
        assert first(again, example(part, "unseen")) == number


def test_the_score_of_a_file_does_not_depend_on_the_others(learned: BjxNet) -> None:
    graphs = [code(called) for _, called in PARTS.values()]
    asked = report(PARTS["loader"][0])
    together = learned.ranked(asked, graphs)
    alone = [float(learned.ranked(asked, [graph])[0]) for graph in graphs]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_edges_matter(learned: BjxNet) -> None:
    graph = code(PARTS["saver"][1])
    cut = graph._replace(edges=graph.edges[:0])
    scores = learned.ranked(report(["restart"]), [graph, cut])
    assert scores[0] != pytest.approx(scores[1], abs=1e-4)


def test_files_without_code_come_last(learned: BjxNet) -> None:
    empty = numbered(graph_of(b"", "a.py"))
    for graphs in ([empty], [empty, code(PARTS["saver"][1]), empty]):
        scores = learned.ranked(report(["restart"]), graphs)
        assert np.isfinite(scores).all()
        assert scores[0] == scores[-1] == -1


# -- The package's weights ---------------------------------------------------------------------


def test_the_shipped_weights_rank_every_file_of_a_repository(project: Made) -> None:
    corpus = Corpus.of(Repository(project.folder).snapshot())
    for text in ("ShardReader.read_shard: the shard was cut off", "x", "it is not", "模型"):
        scores = METHODS["bjxnet"]().scores(query_of(Report(text)), corpus)
        assert scores.shape == (len(corpus),)
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()
        assert (np.abs(scores) <= 1 + 1e-5).all()


def test_the_method_is_chosen_by_its_name(project: Made) -> None:
    found = Locator(project.folder).locate(
        "ShardReader.read_shard: the shard was cut off", method="bjxnet"
    )
    assert found.method == "bjxnet"
    assert found.searched == 3
    assert found.items


def test_the_card_says_on_what_the_weights_were_trained_and_on_what_never() -> None:
    stored = files("epochzero.locate.techniques.bjxnet") / "bjxnet.npz"
    with stored.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        card = json.loads(arrays[CARD].tobytes())
        assert {arrays[name].dtype for name in arrays.files if name != CARD} == {np.dtype("f2")}
    assert card["trained_on"]["bugs"] == sum(card["trained_on"]["projects"].values())
    assert card["never"]
    assert len(stored.read_bytes()) <= 2_000_000


def test_a_corpus_without_text_is_refused(project: Made) -> None:
    whole = Corpus.of(Repository(project.folder).snapshot())
    with pytest.raises(InputError, match="text"):
        shipped().scores(query_of(Report("a shard")), Corpus(whole.paths, whole.parsed))


# -- Without PyTorch ---------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules["torch"] = None
from epochzero.cli import main
main()
"""
NEVER_LOADED = """
import sys
import epochzero
for method in sys.argv[2:]:
    epochzero.locate("a shard", sys.argv[1], method=method)
    assert "torch" not in sys.modules, method
"""


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_without_pytorch_the_error_says_what_to_install(project: Made) -> None:
    project.write("issue.md", "ShardReader fails\n")
    asked = [
        "locate",
        str(project.folder / "issue.md"),
        "--repo",
        str(project.folder),
        "--no-cache",
    ]
    refused = python(WITHOUT, *asked, "--method", "bjxnet")
    assert refused.returncode == 2
    assert "pip install 'epochzero[torch]'" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert python(WITHOUT, *asked, "--method", "bm25").returncode == 0


def test_no_other_method_loads_pytorch(project: Made) -> None:
    others = [name for name in METHODS if name != "bjxnet"]
    done = python(NEVER_LOADED, str(project.folder), *others)
    assert done.returncode == 0, done.stderr
