"""A training as the methods read it: layers in the order of their calls, epochs, and observations of each layer.

A layer's weight corresponds to its Keras kernel: its first parameter with two or more dimensions.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from epochzero.run.watch.history import EvaluationPass, Iteration, TrainingHistory
from epochzero.run.watch.model import SourceLine

PARTS = 10
"""Number of epochs into which a training without epoch boundaries is divided."""
_ACTIVATIONS = {
    "celu": "elu", "elu": "elu", "hardtanh": "tanh", "leakyrelu": "linear", "logsigmoid": "linear",
    "logsoftmax": "softmax", "relu": "relu", "relu6": "relu", "selu": "elu", "sigmoid": "sigmoid",
    "softmax": "softmax", "softplus": "relu", "tanh": "tanh",
}  # fmt: skip
_FLAT = ("Flatten", "Unflatten", "Identity")


@dataclass(frozen=True, slots=True)
class CalledLayer:
    """A layer or a function, in the order of calls.

    Attributes:
        number: from 0.
        path: in its model; for a function ``path:relu``.
        activation: Keras's name of its function; empty if it is none.
        weight, bias: names of its parameters; empty if it has none.
        place: the line that created it.
        reshapes: whether it only reshapes its input.
        trained: whether its parameters require gradients.
    """

    number: int
    path: str
    activation: str
    weight: str
    bias: str
    place: SourceLine | None
    reshapes: bool
    trained: bool

    @property
    def name(self) -> str:
        """The path of the layer; for a function, of the layer that calls it."""
        return self.path.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Epoch:
    """A part of the training.

    Attributes:
        number: from 0.
        looks: the sampled iterations, at least one.
        loss: mean training loss; None if it was not recorded.
        accuracy: mean over the samples; None for a task without classes.
        evaluation: at its end; None if there was none.
    """

    number: int
    looks: tuple[Iteration, ...]
    loss: float | None
    accuracy: float | None
    evaluation: EvaluationPass | None


class Recent:
    """The last values of each quantity, in blocks of a given length."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._values: dict[object, list[float]] = defaultdict(list)

    def add(self, key: object, value: float) -> None:
        """Add the next value of a quantity."""
        self._values[key].append(value)

    def unchanged(self, key: object) -> bool:
        """Whether a block is full and all its values are equal; this ends a full block."""
        values = self._values[key]
        if len(values) < self._length:
            return False
        self._values[key] = []
        return all(value == values[0] for value in values)


def layers(history: TrainingHistory) -> tuple[CalledLayer, ...]:
    """Return all layers and functions that were called."""
    found = []
    for number, (path, kind) in enumerate(history.order):
        own = [parameter for parameter in history.parameters if parameter.layer == path]
        known = history.layer(path)
        found.append(
            CalledLayer(
                number=number,
                path=path,
                activation=_ACTIVATIONS.get(kind.lower().replace("_", ""), ""),
                weight=next((of.name for of in own if len(of.shape) >= 2), ""),
                bias=next((of.name for of in own if len(of.shape) == 1), ""),
                place=known.place if known else None,
                reshapes=kind in _FLAT,
                trained=any(of.trainable for of in own),
            )
        )
    return tuple(found)


def epochs(history: TrainingHistory) -> tuple[Epoch, ...]:
    """Return the training in epochs: passes of its loader, otherwise intervals between evaluations, otherwise equal
    parts.
    """
    ends = _ends(history)
    evaluations = {evaluation.iteration: evaluation for evaluation in history.evaluations}
    found: list[Epoch] = []
    for begin, end in pairwise((0, *ends)):
        looks = tuple(look for look in history.iterations if begin <= look.number < end)
        if not looks:
            continue
        losses = [value for number, value in history.loss if begin <= number < end]
        accuracies = [look.accuracy for look in looks if look.accuracy is not None]
        found.append(
            Epoch(
                number=len(found),
                looks=looks,
                loss=float(np.mean(losses)) if losses else None,
                accuracy=float(np.mean(accuracies)) if accuracies else None,
                evaluation=evaluations.get(end),
            )
        )
    return tuple(found)


def _ends(history: TrainingHistory) -> Sequence[int]:
    """Return the first iteration after each epoch."""
    begun = _begun(history)
    if len(begun) > 1:
        return (*begun[1:], history.count)
    evaluated = sorted({ev.iteration for ev in history.evaluations if ev.iteration > 0})
    if len(evaluated) > 1:
        return evaluated
    length = _batches(history.loaders[0]) if history.loaders else 0
    if not 1 < length < history.count:
        length = max(1, -(-history.count // PARTS))
    return range(length, history.count + length, length)


def _begun(history: TrainingHistory) -> Sequence[int]:
    """Return the first iteration of each epoch: where the loader of most iterations was restarted."""
    usual = Counter(iteration.loader for iteration in history.iterations).most_common(1)
    of_training = [of for of in history.epochs if usual and of.get("loader") == usual[0][0]]
    return sorted({n for record in of_training if (n := int(record["iteration"])) < history.count})


def _batches(loader: Mapping[str, object]) -> int:
    examples, size = loader.get("examples"), loader.get("batch_size")
    if not isinstance(examples, int) or not isinstance(size, int) or size < 1:
        return 0
    return math.ceil(examples / size)
