"""A model at run time that says which of its predictions are beyond it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero_models.classifier import Classifier, as_classifier
from epochzero_models.dissect.dissector import Dissector, read_dissector
from epochzero_models.dissect.layers import snapshots_of

REJECTED = -1
REPEATS = 30


@dataclass(frozen=True, eq=False)
class Guarded:
    """Predictions with how far they can be trusted.

    Attributes:
        predicted: class of each input, shape (n,).
        validity: 0 to 1, shape (n,).
        within: whether it reaches the threshold, shape (n,).
    """

    predicted: Tensor
    validity: Tensor
    within: Tensor

    @property
    def accepted(self) -> Tensor:
        """The predictions, with -1 in the place of those that are rejected."""
        return torch.where(self.within, self.predicted, REJECTED)


class Guard:
    """A model that flags inputs beyond it.

    >>> guard = Guard(model, "dissected/")  # doctest: +SKIP
    >>> guard(inputs).within  # doctest: +SKIP
    tensor([ True, False])

    Args:
        model: a module, which is put into evaluation mode, or what `load_model` gives.
        dissector: or the directory where one is stored.

    Raises:
        InputError: the folder has none, or the layers of the model cannot be seen.
    """

    def __init__(self, model: Classifier | nn.Module, dissector: Dissector | str | Path) -> None:
        self.classifier = as_classifier(model)
        read = dissector if isinstance(dissector, Dissector) else read_dissector(dissector)
        self.dissector = read.to(self.classifier.device)
        known = {layer.name for layer in self.classifier.layered().known}
        for layer in self.dissector.layers:
            if layer not in known:
                raise InputError(
                    f"{self.classifier.name}: has no layer {layer!r}: another model was dissected"
                )

    def __call__(self, inputs: Tensor) -> Guarded:
        """Predictions and their validity.

        Args:
            inputs: a batch, shape (n, ...).

        Raises:
            InputError: the model fails on them, or has other classes than the one that was dissected.
        """
        with torch.no_grad():
            scores, calls = self.classifier.seen(inputs, self.dissector.layers)
            logits = scores.float()
        if logits.shape[1] != self.dissector.classes:
            raise InputError(
                f"{self.classifier.name}: has {logits.shape[1]} classes, the model that was dissected "
                f"{self.dissector.classes}"
            )
        seen = snapshots_of(self.classifier, self.dissector.layers, calls)
        validity = self.dissector.validity(seen, logits)
        return Guarded(logits.argmax(dim=1), validity, validity >= self.dissector.threshold)


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a guard costs.

    Attributes:
        batch: inputs at a time.
        model_ms: of the model alone, median.
        guard_ms: of the guard besides, median of the differences.
    """

    batch: int
    model_ms: float
    guard_ms: float


def measure_overhead(guard: Guard, inputs: Tensor) -> Overhead:
    """Times the model alone and guarded, by turns, on one batch."""

    def plain() -> None:
        with torch.no_grad():
            guard.classifier.logits(inputs)

    def guarded() -> None:
        guard(inputs)

    cuda = guard.classifier.device.type == "cuda"
    times: list[tuple[float, float]] = []
    for _ in range(REPEATS):
        times.append((_milliseconds(plain, cuda), _milliseconds(guarded, cuda)))
    alone = sorted(number for number, _ in times)[REPEATS // 2]
    added = sorted(with_guard - number for number, with_guard in times)[REPEATS // 2]
    return Overhead(len(inputs), alone, max(0.0, added))


def _milliseconds(run: Callable[[], None], cuda: bool) -> float:
    began = time.perf_counter()
    run()
    if cuda:
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began)
