"""Sub-models: a linear softmax classifier on the outputs of each layer, the model itself frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from epochzero_models.classifier import Classifier, ProgressCallback, batches
from epochzero_models.dissect.layers import snapshots_of
from epochzero_models.examples import Examples

ITERATIONS = 100
TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Submodel:
    """Logits of a layer's features.

    Attributes:
        layer: name of the module.
        weight: shape (classes, features).
        bias: shape (classes,).
    """

    layer: str
    weight: Tensor
    bias: Tensor

    def logits(self, features: Tensor) -> Tensor:
        """Shape (n, classes)."""
        return functional.linear(features, self.weight, self.bias)


@dataclass(frozen=True, eq=False)
class Snapshots:
    """What the layers and the model give for some examples, on the CPU.

    Attributes:
        features: of each layer, shape (n, features).
        logits: of the model, shape (n, classes).
    """

    features: tuple[Tensor, ...]
    logits: Tensor

    @property
    def predicted(self) -> Tensor:
        """The class that the model predicts, shape (n,)."""
        return self.logits.argmax(dim=1)


def look_into(
    classifier: Classifier,
    layers: Sequence[str],
    examples: Examples,
    on_progress: ProgressCallback | None = None,
) -> Snapshots:
    """The features of the layers for all examples, by one forward each.

    Raises:
        InputError: the model fails, or a layer is not called.
    """
    features: list[list[Tensor]] = [[] for _ in layers]
    logits: list[Tensor] = []
    done = 0
    with torch.no_grad():
        for batch in batches(examples):
            scores, calls = classifier.seen(batch, layers)
            logits.append(scores.float().cpu())
            for feature, seen in zip(
                features, snapshots_of(classifier, layers, calls), strict=True
            ):
                feature.append(seen.cpu())
            done += len(batch)
            if on_progress:
                on_progress(f"{examples.name}: examples read", done, len(examples))
    return Snapshots(tuple(torch.cat(feature) for feature in features), torch.cat(logits))


def train_submodel(layer: str, features: Tensor, labels: Tensor, classes: int) -> Submodel:
    """Multinomial logistic regression by L-BFGS, with the squared weights as penalty (C = 1).

    Features are standardized first; the weights that are returned take them as they are.

    Args:
        layer: name of the module.
        features: shape (n, features).
        labels: shape (n,), below ``classes``.
        classes: how many the model has.
    """
    center, spread = features.mean(dim=0), features.std(dim=0, correction=0)
    scale = torch.where(spread > 1e-6, 1 / spread.clamp_min(1e-6), 0.0)
    standard = (features - center) * scale
    weight = torch.zeros(classes, features.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        (weight, bias), max_iter=ITERATIONS, tolerance_grad=TOLERANCE, line_search_fn="strong_wolfe"
    )

    def loss() -> float:
        optimizer.zero_grad()
        fit = functional.cross_entropy(functional.linear(standard, weight, bias), labels)
        penalized = fit + weight.square().sum() / (2 * len(labels))
        penalized.backward()  # type: ignore[no-untyped-call]
        return float(penalized.detach())

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    scaled = weight.detach() * scale
    return Submodel(layer, scaled, bias.detach() - scaled @ center)
