"""The network of bjXnet and its training; needs PyTorch, so only `bjxnet` imports it, when asked.

A node of a code property graph starts as the mean of its words' embeddings. A gated graph network
(Y. Li et al., "Gated Graph Sequence Neural Networks", ICLR 2016, Section 3.2) passes messages along
each kind of edge, both ways. A convolutional network over words (Y. Kim, "Convolutional Neural
Networks for Sentence Classification", EMNLP 2014, Section 2) reads the report. The report attends to
the nodes of a file, and the cosine of what it finds there with itself is the file's score.
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
from epochzero.locate.techniques.bjxnet import BUCKETS, FileGraph

__all__ = ["Example", "Network", "Size", "fit"]

EDGE_KINDS = 3
NOWHERE = -1.0
"""The score of a file without nodes: no cosine is less."""
FILES_AT_ONCE = 256
"""Files whose graphs are encoded together, for the memory."""
AT_ONCE = 8
"""Bugs in a step of training."""
LEARNING_RATE = 1e-3
"""As the study's (Jahan et al., EMSE 2025, replication package)."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A bug to learn from.

    Attributes:
        report: rows of the embedding table, in the order of the report's words.
        graphs: of files.
        wanted: which of them the fix changed, (files,).
    """

    report: NDArray[np.uint16]
    graphs: Sequence[FileGraph]
    wanted: NDArray[np.bool_]


class Size(NamedTuple):
    """The size of a network: of embeddings and states, filters of each width, steps of messages."""

    width: int = 64
    filters: int = 64
    steps: int = 3


WIDTHS = (3, 4, 5)
"""Words that a filter sees; the paper's, by the study."""


class Network(nn.Module):
    """bjXnet.

    Args:
        size: how large it is.
    """

    def __init__(self, size: Size = Size()) -> None:  # noqa: B008 - an immutable tuple
        super().__init__()
        self.size = size
        self.table = nn.Parameter(torch.randn(BUCKETS, size.width) / size.width**0.5)
        self.filters = nn.ModuleList(
            [nn.Conv1d(size.width, size.filters, width, padding=width - 1) for width in WIDTHS]
        )
        self.report = nn.Linear(len(WIDTHS) * size.filters, size.width)
        self.messages = nn.ModuleList(
            [nn.Linear(size.width, size.width, bias=False) for _ in range(2 * EDGE_KINDS)]
        )
        self.cell = nn.GRUCell(size.width, size.width)
        self.attention = nn.Linear(size.width, size.width, bias=False)
        self.sharpness = nn.Parameter(torch.tensor(10.0))

    @property
    def device(self) -> torch.device:
        """Where the network lies."""
        return self.table.device

    def read(self, report: NDArray[np.uint16]) -> Tensor:
        """A report's vector, (width,).

        Args:
            report: rows of the table; one at least.
        """
        words = torch.from_numpy(report.astype(np.int64)).to(self.device)
        embedded = F.embedding(words, self.table)
        found = [F.relu(layer(embedded.T[None])).amax(dim=2)[0] for layer in self.filters]
        # What the filters make of words that training never met is little; their mean still tells.
        read: Tensor = embedded.mean(dim=0) + self.report(torch.cat(found))
        return read

    def nodes(self, graphs: Sequence[FileGraph]) -> tuple[Tensor, Tensor]:
        """The states of all nodes of some files, (nodes, width), and of each its file, (nodes,)."""
        words, bounds, edges, file = (
            torch.from_numpy(array).to(self.device) for array in _joined(graphs)
        )
        state = F.embedding_bag(words, self.table, bounds, mode="mean")
        ways = [(edges[edges[:, 0] == kind][:, 1:], kind) for kind in range(EDGE_KINDS)]
        for _ in range(self.size.steps):
            heard = torch.zeros_like(state)
            for pairs, kind in ways:
                for way, (source, target) in enumerate((pairs.T, pairs.T.flip(0))):
                    sent = self.messages[2 * kind + way](state)
                    heard = heard + _mean_over(sent[source], target, len(state))
            state = self.cell(heard, state)
        return state, file

    def scores(self, report: Tensor, nodes: Tensor, file: Tensor, files: int) -> Tensor:
        """The score of each file for one report, (files,).

        Args:
            report: of `read`.
            nodes, file: of `nodes`.
            files: how many there are.
        """
        heed = nodes @ self.attention(report)
        top = torch.full((files,), -torch.inf, device=heed.device)
        top = top.scatter_reduce(0, file, heed.detach(), "amax")
        weight = torch.exp(heed - top[file])
        found = torch.zeros(files, nodes.shape[1], device=heed.device)
        found = found.index_add(0, file, weight[:, None] * nodes)
        cosines = F.cosine_similarity(found, report[None], dim=1)
        return torch.where(torch.isinf(top), torch.full_like(cosines, NOWHERE), cosines)

    def encoded(self, graphs: Sequence[FileGraph]) -> tuple[Tensor, Tensor]:
        """What `nodes` gives, for any number of files and without gradients."""
        states, owners = [], []
        with torch.inference_mode():
            for begin in range(0, len(graphs), FILES_AT_ONCE):
                nodes, file = self.nodes(graphs[begin : begin + FILES_AT_ONCE])
                states.append(nodes)
                owners.append(file + begin)
        return torch.cat(states), torch.cat(owners)

    def ranked(self, report: NDArray[np.uint16], nodes: Tensor, file: Tensor, files: int) -> Floats:
        """What `scores` gives, from a report's words and without gradients."""
        with torch.inference_mode():
            found = self.scores(self.read(report), nodes, file, files)
        return np.asarray(found.cpu().numpy(), np.float32)

    def arrays(self) -> dict[str, NDArray[np.float16]]:
        """The weights by their names, for a file."""
        return {name: of.detach().cpu().half().numpy() for name, of in self.state_dict().items()}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.float16]]) -> Network:
        """The network of which these are the weights."""
        width = arrays["table"].shape[1]
        network = cls(Size(width, arrays["filters.0.weight"].shape[0]))
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
    said = np.array([len(graph.words) for graph in graphs], np.int64)
    linked = [len(graph.edges) for graph in graphs]
    first_node, first_word = np.cumsum(sizes) - sizes, np.cumsum(said) - said
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
    examples: Sequence[Example],
    *,
    epochs: int,
    seed: int,
    size: Size = Size(),  # noqa: B008 - an immutable tuple
    device: str = "cpu",
    on_epoch: Callable[[int, float], None] | None = None,
) -> Network:
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
    network = Network(size).to(device)
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


def _loss(network: Network, batch: Sequence[Example]) -> Tensor:
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
