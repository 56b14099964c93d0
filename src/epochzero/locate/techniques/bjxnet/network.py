"""The network of bjXnet and its training; needs PyTorch, so only `bjxnet` imports it, when asked.

A node of a code property graph starts as the sum of its words' embeddings. A gated graph network
(Y. Li et al., "Gated Graph Sequence Neural Networks", ICLR 2016, Section 3.2) passes messages along
each kind of edge, both ways, and adds to each node what it heard. A convolutional network over words
(Y. Kim, "Convolutional Neural Networks for Sentence Classification", EMNLP 2014, Section 2) reads the
report. The report as a whole and each of its words attend to the nodes of a file; the file's score is
the mean of the cosines that they find there, each weighted by how much it matters in this report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from numpy.typing import NDArray
from torch import Tensor, nn

from epochzero.locate.index import Floats
from epochzero.locate.techniques.bjxnet.graphs import BUCKETS, FileGraph

EDGE_KINDS = 3
ATTENTION, SHARPNESS = 20.0, 40.0
"""How sharply a node's cosine draws attention, and a file's score the softmax, before training."""
NOWHERE = -1.0
"""The score of a file without nodes: no cosine is less."""
FILES_AT_ONCE = 256
"""Files that are read together, for the memory."""
AT_ONCE = 8
"""Bugs in a step of training."""
LEARNING_RATE = 1e-3
"""As the study's (Jahan et al., EMSE 2025, replication package)."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBug:
    """A bug to learn from.

    Attributes:
        report: rows of the embedding table, in the order of the report's words.
        graphs: of files.
        wanted: which of them the fix changed, (files,).
    """

    report: NDArray[np.uint16]
    graphs: Sequence[FileGraph]
    wanted: NDArray[np.bool_]


class NetworkSize(NamedTuple):
    """The size of a network.

    Attributes:
        width: of embeddings.
        state: of what a node knows of its neighbours.
        filters: of each of `WIDTHS`.
        steps: of messages; the paper's, by the study.
    """

    width: int = 128
    state: int = 48
    filters: int = 64
    steps: int = 3


WIDTHS = (3, 4, 5)
"""Words that a filter sees; the paper's, by the study."""


class BjxNet(nn.Module):
    """bjXnet."""

    def __init__(self, size: NetworkSize = NetworkSize()) -> None:  # noqa: B008 - an immutable tuple
        super().__init__()
        self.size = size
        self.table = nn.Parameter(torch.randn(BUCKETS, size.width) / size.width**0.5)
        self.importance = nn.Parameter(torch.zeros(BUCKETS))
        self.filters = nn.ModuleList(
            [nn.Conv1d(size.width, size.filters, width, padding=width - 1) for width in WIDTHS]
        )
        self.report = nn.Linear(len(WIDTHS) * size.filters, size.width)
        self.start = nn.Linear(size.width, size.state, bias=False)
        self.messages = nn.ModuleList(
            [nn.Linear(size.state, size.state, bias=False) for _ in range(2 * EDGE_KINDS)]
        )
        self.cell = nn.GRUCell(size.state, size.state)
        self.heard = nn.Linear(size.state, size.width, bias=False)
        self.attention = nn.Parameter(torch.tensor(ATTENTION))
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS))

    @property
    def device(self) -> torch.device:
        """Where the network lies."""
        return self.table.device

    def read(self, report: NDArray[np.uint16]) -> tuple[Tensor, Tensor]:
        """What a report asks: vectors of length 1, of the whole and of each of its words, (asked,
        width), and how much each matters, together 1, (asked,).

        Args:
            report: rows of the table; one at least.
        """
        words = torch.from_numpy(report.astype(np.int64)).to(self.device)
        embedded = F.embedding(words, self.table)
        found = [F.relu(layer(embedded.T[None])).amax(dim=2)[0] for layer in self.filters]
        whole = self.report(torch.cat(found))
        each, often = torch.unique(words, return_counts=True)
        asked = torch.cat([whole[None], F.embedding(each, self.table)])
        matters = self.importance[each] + asked[1:] @ whole + often.log1p().log()
        # The whole counts as much as its average word.
        shares = torch.cat([torch.ones(1, device=words.device), matters.softmax(0) * len(each)])
        return F.normalize(asked, dim=1), shares / shares.sum()

    def nodes(self, graphs: Sequence[FileGraph]) -> tuple[Tensor, Tensor]:
        """The vectors of all nodes of some files, of length 1, (nodes, width), and of each its
        file, (nodes,).
        """
        words, bounds, edges, file = (
            torch.from_numpy(array).to(self.device) for array in _joined(graphs)
        )
        own = F.normalize(F.embedding_bag(words, self.table, bounds, mode="mean"), dim=1)
        state = self.start(own)
        ways = [edges[edges[:, 0] == kind][:, 1:].T for kind in range(EDGE_KINDS)]
        for _ in range(self.size.steps):
            heard = torch.zeros_like(state)
            for number, layer in enumerate(self.messages):
                source, target = ways[number // 2].flip(0) if number % 2 else ways[number // 2]
                heard = heard + _mean_over(layer(state)[source], target, len(state))
            state = self.cell(heard, state)
        return F.normalize(own + self.heard(state), dim=1), file

    def scores(
        self, asked: tuple[Tensor, Tensor], nodes: Tensor, file: Tensor, files: int
    ) -> Tensor:
        """The score of each file for one report, (files,).

        Args:
            asked: of `read`.
            nodes, file: of `nodes`.
            files: how many there are.
        """
        vectors, shares = asked
        cosines = nodes @ vectors.T
        weights = torch.exp(self.attention * (cosines - 1))
        nothing = torch.zeros(files, len(vectors), device=nodes.device)
        found = nothing.index_add(0, file, weights * cosines)
        total = nothing.index_add(0, file, weights)
        scores = found / total.clamp(min=torch.finfo().tiny) @ shares
        empty = torch.bincount(file, minlength=files) == 0
        return torch.where(empty, torch.full_like(scores, NOWHERE), scores)

    def ranked(self, report: NDArray[np.uint16], graphs: Sequence[FileGraph]) -> Floats:
        """The score of each file for one report, without gradients, (files,).

        Args:
            report: rows of the table; one at least.
            graphs: of the files, any number.
        """
        found = [np.zeros(0, np.float32)]
        with torch.inference_mode():
            asked = self.read(report)
            for begin in range(0, len(graphs), FILES_AT_ONCE):
                part = graphs[begin : begin + FILES_AT_ONCE]
                found.append(self.scores(asked, *self.nodes(part), len(part)).cpu().numpy())
        return np.concatenate(found)

    def arrays(self) -> dict[str, NDArray[np.float16]]:
        """The weights by their names, for a file."""
        return {name: of.detach().cpu().half().numpy() for name, of in self.state_dict().items()}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.float16]]) -> BjxNet:
        """The network with these weights."""
        state, width = arrays["start.weight"].shape
        network = cls(NetworkSize(width, state, arrays["filters.0.weight"].shape[0]))
        found = {name: torch.from_numpy(of.astype(np.float32)) for name, of in arrays.items()}
        network.load_state_dict(found)
        return network.eval()


def _mean_over(sent: Tensor, target: Tensor, count: int) -> Tensor:
    """The mean of what is sent to each of ``count`` nodes; 0 where nothing is."""
    total = torch.zeros(count, sent.shape[1], device=sent.device).index_add(0, target, sent)
    often = torch.bincount(target, minlength=count).clamp(min=1)
    return total / often[:, None]


def _joined(graphs: Sequence[FileGraph]) -> tuple[Ints, Ints, Ints, Ints]:
    """Words, bounds and edges of all graphs as of one, and the file of each node."""
    sizes = np.array([len(graph.bounds) for graph in graphs], np.int64)
    word_counts = np.array([len(graph.words) for graph in graphs], np.int64)
    linked = [len(graph.edges) for graph in graphs]
    first_node, first_word = np.cumsum(sizes) - sizes, np.cumsum(word_counts) - word_counts
    none = np.zeros((0, 3), np.uint16)
    edges = np.concatenate([none, *(graph.edges for graph in graphs)]).astype(np.int64)
    edges[:, 1:] += np.repeat(first_node, linked)[:, None]
    return (
        np.concatenate([none[:, 0], *(graph.words for graph in graphs)]).astype(np.int64),
        np.concatenate([none[:, 0], *(graph.bounds for graph in graphs)]).astype(np.int64)
        + np.repeat(first_word, sizes),
        edges,
        np.repeat(np.arange(len(graphs)), sizes),
    )


# -- Training ----------------------------------------------------------------------------------


def fit(
    examples: Sequence[TrainingBug],
    *,
    epochs: int,
    seed: int,
    size: NetworkSize = NetworkSize(),  # noqa: B008 - an immutable tuple
    device: str = "cpu",
    on_epoch: Callable[[int, float], None] | None = None,
) -> BjxNet:
    """A network that learned to score the files of a fix above others.

    The loss of a bug is the cross-entropy of the softmax over its files with the files wanted; the
    study's is that of each cosine by itself, which does not see the order.

    Args:
        examples: to learn from.
        epochs: how often each is seen.
        seed: of the first weights and of the order.
        size: of the network.
        device: where to train, as PyTorch names it.
        on_epoch: called with the number of each epoch and its mean loss.
    """
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    network = BjxNet(size)
    with torch.no_grad():
        network.importance.copy_(torch.from_numpy(_rarity(examples)))
    network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    for epoch in range(epochs):
        order = draw.permutation(len(examples))
        total = 0.0
        for begin in range(0, len(order), AT_ONCE):
            batch = [examples[n] for n in order[begin : begin + AT_ONCE].tolist()]
            optimizer.zero_grad()
            loss = _loss(network, batch)
            torch.autograd.backward(loss)
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        if on_epoch is not None:
            on_epoch(epoch, total / len(order))
    return network.cpu().eval()


def _rarity(examples: Sequence[TrainingBug]) -> Floats:
    """The logarithm of the inverse document frequency of each row of the table, (rows,)."""
    held = np.zeros(BUCKETS, np.int64)
    graphs = [graph for example in examples for graph in example.graphs]
    for graph in graphs:
        held[np.unique(graph.words)] += 1
    return np.log(np.log((len(graphs) + 1) / (held + 0.5))).astype(np.float32)


def _loss(network: BjxNet, batch: Sequence[TrainingBug]) -> Tensor:
    """The mean loss of some bugs."""
    nodes, file = network.nodes([graph for example in batch for graph in example.graphs])
    losses = []
    begin = 0
    for example in batch:
        count = len(example.graphs)
        own = (file >= begin) & (file < begin + count)
        scores = network.scores(network.read(example.report), nodes[own], file[own] - begin, count)
        likely = F.log_softmax(scores * network.sharpness, dim=0)
        losses.append(-likely[torch.from_numpy(example.wanted).to(likely.device)].mean())
        begin += count
    return torch.stack(losses).mean()
