"""A model at run time that says which inputs it cannot handle."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero_models.classifier import Classifier, as_classifier, as_tensor
from epochzero_models.dissect.dissector import Dissector, read_dissector
from epochzero_models.dissect.layers import snapshots_of
from epochzero_models.layers.modules import ModuleLayers
from epochzero_models.timing import milliseconds

REJECTED = -1
REPEATS = 30
OPSET = 17


@dataclass(frozen=True, eq=False)
class Guarded:
    """Predictions, and whether the model can handle their inputs.

    Attributes:
        predicted: class of each input, shape (n,).
        score: of the detector, shape (n,); larger for inputs that the model can handle.
        within: whether it reaches the threshold, shape (n,).
    """

    predicted: Tensor
    score: Tensor
    within: Tensor

    @property
    def accepted(self) -> Tensor:
        """The predictions, with -1 in the place of those that are rejected."""
        return torch.where(self.within, self.predicted, REJECTED)


class Guard:
    """A model that flags inputs that it cannot handle.

    >>> guard = Guard(model, "dissected/")  # doctest: +SKIP
    >>> guard(inputs).within  # doctest: +SKIP
    tensor([ True, False])

    Args:
        model: a module, which is put into evaluation mode, or what `load_model` gives.
        dissector: or the directory where one is stored.

    Raises:
        InputError: the directory has none, or the layers of the model cannot be seen.
    """

    def __init__(self, model: Classifier | nn.Module, dissector: Dissector | str | Path) -> None:
        self.classifier = as_classifier(model)
        self.dissector = (
            dissector if isinstance(dissector, Dissector) else read_dissector(dissector)
        )
        self.detector = copy.deepcopy(self.dissector.detector).to(self.classifier.device)
        known = {layer.name for layer in self.classifier.layered().known}
        for layer in self.dissector.layers:
            if layer not in known:
                raise InputError(
                    f"{self.classifier.name} has no layer {layer!r}: another model was dissected"
                )

    def __call__(self, inputs: Tensor) -> Guarded:
        """Predictions and their scores.

        Args:
            inputs: a batch, shape (n, ...).

        Raises:
            InputError: the model fails on them, or has other classes than the one that was dissected.
        """
        with torch.no_grad():
            outputs, calls = self.classifier.seen(inputs, self.dissector.layers)
            logits = outputs.float()
            if logits.shape[1] != self.dissector.classes:
                raise InputError(
                    f"{self.classifier.name} has {logits.shape[1]} classes, but the dissected model has "
                    f"{self.dissector.classes}"
                )
            features = snapshots_of(self.classifier, self.dissector.layers, calls)
            score = self.detector(features, logits)
        return Guarded(logits.argmax(dim=1), score, score >= self.dissector.threshold)

    def export(self, path: str | Path, inputs: Tensor) -> None:
        """Write the model with its detector as ONNX, whose outputs are ``predicted``, ``score`` and ``within``.

        Args:
            path: of the file.
            inputs: one batch; the exported batch size is free.

        Raises:
            InputError: the model is not built by code, onnx is not installed, or an operation cannot be exported.
        """
        module = self.classifier.module
        if module is None or not isinstance(self.classifier.layers, ModuleLayers):
            raise InputError(
                f"{self.classifier.name}: only models that your code builds can be exported with a guard"
            )
        outputs = ["predicted", "score", "within"]
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            # Warnings are of checks of shapes, which an exported model does not repeat.
            with warnings.catch_warnings(action="ignore"):
                torch.onnx.export(
                    _Exported(self, module),
                    (as_tensor(inputs),),
                    str(path),
                    dynamo=False,
                    input_names=["inputs"],
                    output_names=outputs,
                    dynamic_axes={name: {0: "n"} for name in ["inputs", *outputs]},
                    opset_version=OPSET,
                )
        except (RuntimeError, ImportError, OSError) as error:
            reason = str(error).splitlines()[0][:300]
            install = "" if find_spec("onnx") else "; pip install 'epochzero[onnx]'"
            raise InputError(
                f"{path}: the guarded model cannot be exported: {reason}{install}"
            ) from error


class _Exported(nn.Module):
    """A guard as a module, with the weights of the model."""

    def __init__(self, guard: Guard, module: nn.Module) -> None:
        super().__init__()
        self.guard, self.module, self.detector = guard, module, guard.detector

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        guarded = self.guard(inputs)
        return guarded.predicted, guarded.score, guarded.within


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

    device = guard.classifier.device
    times: list[tuple[float, float]] = []
    for _ in range(REPEATS):
        times.append((milliseconds(plain, device), milliseconds(guarded, device)))
    alone = sorted(number for number, _ in times)[REPEATS // 2]
    added = sorted(with_guard - number for number, with_guard in times)[REPEATS // 2]
    return Overhead(len(inputs), alone, max(0.0, added))
