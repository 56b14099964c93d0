"""Detectors that DISSECTOR is compared with: scores that are larger for inputs that the model can handle.

Each is a module of the features of the last layer before the outputs, shape (n, features), and the logits, shape
(n, classes); it returns scores of shape (n,).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from sklearn.covariance import ledoit_wolf
from torch import Tensor, nn
from torch.nn import functional

EXAMPLES_PER_NEIGHBOR = 1000
"""k of the paper's experiments on CIFAR: 50 of 50,000."""
MOST_NEIGHBORS = 10_000
"""Training examples among which the nearest are searched: a random sample of more."""
_MOST_COVARIANCES = 1 << 26
"""Numbers in the covariances of all classes, which DDU holds."""
_LINEAR = 0.99
"""Share of the logits' variance that a linear layer on the features must explain for ViM."""

Detector = Callable[[Tensor, Tensor], Tensor]


def max_softmax(_: Tensor, logits: Tensor) -> Tensor:
    """The largest probability. Hendrycks and Gimpel (ICLR 2017)."""
    return logits.double().softmax(dim=1).max(dim=1).values


def max_logit(_: Tensor, logits: Tensor) -> Tensor:
    """The largest logit. Hendrycks et al. (ICML 2022)."""
    return logits.double().max(dim=1).values


def energy(_: Tensor, logits: Tensor) -> Tensor:
    """The negative free energy at temperature 1. Liu et al. (NeurIPS 2020), equation 4.

    It is the same for all inputs if the model returns probabilities.
    """
    return logits.double().logsumexp(dim=1)


class Mahalanobis(nn.Module):
    """The negative squared distance to the nearest class mean. Lee et al. (NeurIPS 2018), section 2.1.

    All classes share one covariance. Directions in which the training data do not vary are left out (pseudo-inverse).

    Args:
        features: of the training data, shape (n, features).
        labels: shape (n,).
    """

    whitening: Tensor
    means: Tensor

    def __init__(self, features: Tensor, labels: Tensor) -> None:
        super().__init__()
        wide = features.double()
        classes = labels.bincount().nonzero()[:, 0]
        means = torch.stack([wide[labels == class_].mean(dim=0) for class_ in classes])
        centered = wide - means[torch.searchsorted(classes, labels)]
        values, vectors = torch.linalg.eigh(centered.T @ centered / len(wide))
        known = values > values[-1] * 1e-9
        whitening = vectors[:, known] / values[known].sqrt()
        self.register_buffer("whitening", whitening)
        self.register_buffer("means", means @ whitening)

    def forward(self, features: Tensor, _: Tensor) -> Tensor:
        """See the class."""
        white = features.double() @ self.whitening
        squares: Tensor = torch.cdist(white, self.means).square()
        return -squares.min(dim=1).values


class RelativeMahalanobis(nn.Module):
    """The Mahalanobis distance to the nearest class less that to all data. Ren et al. (2021), equation 2.

    Args:
        features: of the training data, shape (n, features).
        labels: shape (n,).
    """

    def __init__(self, features: Tensor, labels: Tensor) -> None:
        super().__init__()
        self.to_class = Mahalanobis(features, labels)
        self.to_all = Mahalanobis(features, torch.zeros_like(labels))

    def forward(self, features: Tensor, logits: Tensor) -> Tensor:
        """See the class."""
        to_class: Tensor = self.to_class(features, logits)
        to_all: Tensor = self.to_all(features, logits)
        return to_class - to_all


class NearestNeighbors(nn.Module):
    """The negative distance to the k-th nearest training example, of normalized features. Sun et al. (ICML 2022).

    Args:
        features: of the training data, shape (n, features).
        seed: of the sample of training data.
    """

    known: Tensor

    def __init__(self, features: Tensor, seed: int) -> None:
        super().__init__()
        if len(features) > MOST_NEIGHBORS:
            draw = torch.Generator().manual_seed(seed)
            features = features[torch.randperm(len(features), generator=draw)[:MOST_NEIGHBORS]]
        self.k = max(1, len(features) // EXAMPLES_PER_NEIGHBOR)
        self.register_buffer("known", functional.normalize(features))

    def forward(self, features: Tensor, _: Tensor) -> Tensor:
        """See the class."""
        parts = torch.split(functional.normalize(features), 1024)
        distances = [torch.cdist(part, self.known).kthvalue(self.k, dim=1).values for part in parts]
        return -torch.cat(distances)


class VirtualLogit(nn.Module):
    """ViM: the energy less the scaled part of the features outside of the data's main directions.

    Wang et al. (CVPR 2022), sections 4.1 and 4.2; half of the dimensions are main directions. The last layer of the model
    is found by least squares.

    Args:
        features: of the training data, shape (n, features).
        logits: of the model on them, shape (n, classes).

    Raises:
        ValueError: the logits are no linear function of the features.
    """

    origin: Tensor
    outside: Tensor
    scale: Tensor

    def __init__(self, features: Tensor, logits: Tensor) -> None:
        super().__init__()
        wide, outputs = features.double(), logits.double()
        ones = torch.ones(len(wide), 1, dtype=torch.double)
        solution = torch.linalg.lstsq(
            torch.cat((wide, ones), dim=1), outputs, driver="gelsd"
        ).solution
        rest = outputs - wide @ solution[:-1] - solution[-1]
        if rest.square().sum() > (1 - _LINEAR) * (outputs - outputs.mean(dim=0)).square().sum():
            raise ValueError("the logits are not a linear function of the last layer's features")
        origin = -torch.linalg.pinv(solution[:-1].T) @ solution[-1]
        _, vectors = torch.linalg.eigh((wide - origin).T @ (wide - origin) / len(wide))
        outside = vectors[:, : max(1, wide.shape[1] // 2)]
        norms = ((wide - origin) @ outside).norm(dim=1)
        self.register_buffer("origin", origin)
        self.register_buffer("outside", outside)
        self.register_buffer("scale", outputs.max(dim=1).values.mean() / norms.mean())

    def forward(self, features: Tensor, logits: Tensor) -> Tensor:
        """See the class."""
        outside: Tensor = ((features.double() - self.origin) @ self.outside).norm(dim=1)
        return energy(features, logits) - self.scale * outside


class FeatureDensity(nn.Module):
    """DDU: the log density of the features under one Gaussian for each class. Mukhoti et al. (CVPR 2023), section 4.

    Covariances are shrunk (Ledoit and Wolf 2004), since a class often has fewer examples than features.

    Args:
        features: of the training data, shape (n, features).
        labels: shape (n,).

    Raises:
        ValueError: the covariances of all classes need too much memory.
        RuntimeError: the features of a class do not vary.
    """

    means: Tensor
    factors: Tensor
    weights: Tensor

    def __init__(self, features: Tensor, labels: Tensor) -> None:
        super().__init__()
        classes = [class_ for class_, count in enumerate(labels.bincount()) if count > 1]
        if len(classes) * features.shape[1] ** 2 > _MOST_COVARIANCES:
            raise ValueError(
                f"{len(classes)} covariances of {features.shape[1]} features are too large"
            )
        wide = features.double()
        means = torch.stack([wide[labels == class_].mean(dim=0) for class_ in classes])
        covariances = [ledoit_wolf(wide[labels == class_].numpy())[0] for class_ in classes]
        factors = torch.linalg.cholesky(torch.from_numpy(np.stack(covariances)))
        shares = torch.stack([(labels == class_).double().mean() for class_ in classes])
        self.register_buffer("means", means)
        self.register_buffer("factors", factors)
        self.register_buffer("weights", shares.log())

    def forward(self, features: Tensor, _: Tensor) -> Tensor:
        """See the class."""
        wide = features.double()
        constant = wide.shape[1] / 2 * math.log(2 * math.pi)
        densities = []
        for mean, factor, weight in zip(self.means, self.factors, self.weights, strict=True):
            white = torch.linalg.solve_triangular(factor, (wide - mean).T, upper=False)
            size = factor.diagonal().log().sum()
            densities.append(weight - constant - size - white.square().sum(dim=0) / 2)
        return torch.stack(densities).logsumexp(dim=0)


def fit_detectors(
    features: Tensor, logits: Tensor, labels: Tensor, seed: int
) -> tuple[dict[str, Detector], tuple[str, ...]]:
    """All detectors by name, and why others are missing.

    Args:
        features: of the training data at the last layer before the outputs, shape (n, features).
        logits: of the model on them, shape (n, classes).
        labels: shape (n,).
        seed: of samples.
    """
    fits: dict[str, Callable[[], Detector]] = {
        "max softmax": lambda: max_softmax,
        "max logit": lambda: max_logit,
        "energy": lambda: energy,
        "Mahalanobis": lambda: Mahalanobis(features, labels),
        "relative Mahalanobis": lambda: RelativeMahalanobis(features, labels),
        "nearest neighbors": lambda: NearestNeighbors(features, seed),
        "ViM": lambda: VirtualLogit(features, logits),
        "DDU": lambda: FeatureDensity(features, labels),
    }
    fitted: dict[str, Detector] = {}
    notes: list[str] = []
    for name, fit in fits.items():
        try:
            fitted[name] = fit()
        except (ValueError, RuntimeError) as error:
            notes.append(f"{name}: {error}")
    return fitted, tuple(notes)
