"""Detectors: scores that are larger for inputs that a model can handle.

A detector is a module with what it has learned in its buffers, so that it can be stored, moved to a device and exported. It takes
the pooled outputs of the layers that are observed, shape (n, features) each, the last one before the outputs at the end, and
the logits, shape (n, classes). It returns scores of shape (n,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from sklearn.covariance import ledoit_wolf
from torch import Tensor, nn
from torch.nn import functional

from epochzero_models.dissect.submodels import Submodel
from epochzero_models.dissect.validity import Growth, profile_validity, snapshot_validity

EXAMPLES_PER_NEIGHBOR = 1000
"""k of the paper's experiments on CIFAR: 50 of 50,000."""
MOST_NEIGHBORS = 10_000
"""Training examples among which the nearest are searched: a random sample of more."""
_AT_ONCE = 1024
"""Examples whose neighbors are searched at once."""
_MOST_COVARIANCES = 1 << 26
"""Numbers in the covariances of all classes, which DDU holds."""
_LINEAR = 0.99
"""Share of the logits' variance that a linear layer on the features must explain for ViM."""


class Detector(nn.Module):
    """A detector from what it has learned.

    Args:
        learned: its buffers by name.
    """

    def __init__(self, **learned: Tensor) -> None:
        super().__init__()
        for name, tensor in learned.items():
            self.register_buffer(name, tensor)

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """Return the scores."""
        raise NotImplementedError


class Validity(Detector):
    """DISSECTOR's profile validity, with weights of the layers that grow with their depth. Wang et al. (ICSE 2020), section 3."""

    growth: Growth = "linear"

    @property
    def submodels(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """The weight and bias of each layer's linear classifier."""
        buffers = dict(self.named_buffers())
        return tuple(
            (buffers[f"weight{at}"], buffers[f"bias{at}"]) for at in range(len(buffers) // 2)
        )

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        pairs = zip(self.submodels, features, strict=True)
        inner = [functional.linear(seen, weight, bias) for (weight, bias), seen in pairs]
        predicted = logits.argmax(dim=1)
        snapshots = [snapshot_validity(scores, predicted) for scores in (*inner, logits)]
        return profile_validity(torch.stack(snapshots, dim=1), self.growth)


class LogarithmicValidity(Validity):
    """The same, with weights that grow with the logarithm of the depth."""

    growth = "log"


class ExponentialValidity(Validity):
    """The same, with weights that grow exponentially."""

    growth = "exp"


class MaxSoftmax(Detector):
    """The largest probability. Hendrycks and Gimpel (ICLR 2017)."""

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        return logits.double().softmax(dim=1).max(dim=1).values


class MaxLogit(Detector):
    """The largest logit. Hendrycks et al. (ICML 2022)."""

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        return logits.double().max(dim=1).values


class Energy(Detector):
    """The negative free energy at temperature 1. Liu et al. (NeurIPS 2020), equation 4.

    It is the same for all inputs if the model returns probabilities.
    """

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        return logits.double().logsumexp(dim=1)


class Mahalanobis(Detector):
    """The negative squared distance to the nearest class mean. Lee et al. (NeurIPS 2018), section 2.1.

    All classes share one covariance. Directions in which the training data do not vary are left out (pseudo-inverse).
    """

    whitening: Tensor
    means: Tensor

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor) -> Mahalanobis:
        """Learn from training data: features of shape (n, features), labels of shape (n,)."""
        whitening, means = _whitened_means(features, labels)
        return cls(whitening=whitening, means=means)

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        return -_squared_distances(features[-1], self.whitening, self.means).min(dim=1).values


class RelativeMahalanobis(Detector):
    """The Mahalanobis distance to the nearest class less that to all data. Ren et al. (2021), equation 2."""

    whitening: Tensor
    means: Tensor
    whitening_of_all: Tensor
    mean_of_all: Tensor

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor) -> RelativeMahalanobis:
        """Learn from training data, as `Mahalanobis.fit`."""
        whitening, means = _whitened_means(features, labels)
        of_all, mean = _whitened_means(features, torch.zeros_like(labels))
        return cls(whitening=whitening, means=means, whitening_of_all=of_all, mean_of_all=mean)

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        to_class = _squared_distances(features[-1], self.whitening, self.means).min(dim=1).values
        to_all = _squared_distances(features[-1], self.whitening_of_all, self.mean_of_all)[:, 0]
        return to_all - to_class


def _whitened_means(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix that whitens what the means of the classes leave over, and the whitened means."""
    wide = features.double()
    classes = labels.bincount().nonzero()[:, 0]
    means = torch.stack([wide[labels == class_].mean(dim=0) for class_ in classes])
    centered = wide - means[torch.searchsorted(classes, labels)]
    values, vectors = torch.linalg.eigh(centered.T @ centered / len(wide))
    known = values > values[-1] * 1e-9
    whitening = vectors[:, known] / values[known].sqrt()
    return whitening, means @ whitening


def _squared_distances(features: Tensor, whitening: Tensor, means: Tensor) -> Tensor:
    """Squared distances to the whitened means, shape (n, classes)."""
    white = features.double() @ whitening
    squares = white.square().sum(dim=1, keepdim=True) + means.square().sum(dim=1)
    return squares - 2 * white @ means.T


class NearestNeighbors(Detector):
    """The negative distance to the k-th nearest training example, of normalized features. Sun et al. (ICML 2022)."""

    known: Tensor
    k: Tensor

    @classmethod
    def fit(cls, features: Tensor, seed: int) -> NearestNeighbors:
        """Learn from training data of shape (n, features), or from a sample of them."""
        if len(features) > MOST_NEIGHBORS:
            draw = torch.Generator().manual_seed(seed)
            features = features[torch.randperm(len(features), generator=draw)[:MOST_NEIGHBORS]]
        k = torch.tensor(max(1, len(features) // EXAMPLES_PER_NEIGHBOR))
        return cls(known=functional.normalize(features), k=k)

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        units = functional.normalize(features[-1])
        parts = torch.split(units, _AT_ONCE) if len(units) > _AT_ONCE else (units,)
        return torch.cat([self._scores(part) for part in parts])

    def _scores(self, units: Tensor) -> Tensor:
        cosines = (units @ self.known.T).topk(int(self.k), dim=1).values[:, -1]
        return -(2 - 2 * cosines).clamp_min(0).sqrt()


class VirtualLogit(Detector):
    """ViM: the energy less the scaled part of the features outside of the data's main directions.

    Wang et al. (CVPR 2022), sections 4.1 and 4.2; half of the dimensions are main directions. The last layer of the model
    is found by least squares.
    """

    origin: Tensor
    outside: Tensor
    scale: Tensor

    @classmethod
    def fit(cls, features: Tensor, logits: Tensor) -> VirtualLogit:
        """Learn from training data: features of shape (n, features), logits of shape (n, classes).

        Raises:
            ValueError: the logits are no linear function of the features.
        """
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
        return cls(
            origin=origin, outside=outside, scale=outputs.max(dim=1).values.mean() / norms.mean()
        )

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        parts = (features[-1].double() - self.origin) @ self.outside
        outside = parts.square().sum(dim=1).sqrt()
        return logits.double().logsumexp(dim=1) - self.scale * outside


class FeatureDensity(Detector):
    """DDU: the log density of the features under one Gaussian for each class. Mukhoti et al. (CVPR 2023), section 4.

    Covariances are shrunk (Ledoit and Wolf 2004), since a class often has fewer examples than features.
    """

    means: Tensor
    whitenings: Tensor
    weights: Tensor

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor) -> FeatureDensity:
        """Learn from training data, as `Mahalanobis.fit`.

        Raises:
            ValueError: the covariances of all classes need too much memory.
            RuntimeError: the features of a class do not vary.
        """
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
        sizes = factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        constant = wide.shape[1] / 2 * math.log(2 * math.pi)
        return cls(
            means=means,
            whitenings=torch.linalg.inv(factors).mT.contiguous(),
            weights=shares.log() - sizes - constant,
        )

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """See the class."""
        wide = features[-1].double()
        densities = [
            weight - ((wide - mean) @ whitening).square().sum(dim=1) / 2
            for mean, whitening, weight in zip(
                self.means, self.whitenings, self.weights, strict=True
            )
        ]
        return torch.stack(densities, dim=1).logsumexp(dim=1)


DETECTORS: Mapping[str, type[Detector]] = {
    "dissector linear": Validity,
    "dissector log": LogarithmicValidity,
    "dissector exp": ExponentialValidity,
    "max softmax": MaxSoftmax,
    "max logit": MaxLogit,
    "energy": Energy,
    "Mahalanobis": Mahalanobis,
    "relative Mahalanobis": RelativeMahalanobis,
    "nearest neighbors": NearestNeighbors,
    "ViM": VirtualLogit,
    "DDU": FeatureDensity,
}


def fit_detectors(
    submodels: Sequence[Submodel], features: Tensor, logits: Tensor, labels: Tensor, seed: int
) -> tuple[dict[str, Detector], tuple[str, ...]]:
    """All detectors by name, and why others are missing.

    Args:
        submodels: of the layers, for DISSECTOR.
        features: of the training data at the last layer before the outputs, shape (n, features).
        logits: of the model on them, shape (n, classes).
        labels: shape (n,).
        seed: of samples.
    """
    classifiers = {
        f"{name}{at}": tensor
        for at, submodel in enumerate(submodels)
        for name, tensor in (("weight", submodel.weight), ("bias", submodel.bias))
    }
    fits: dict[str, Callable[[], Detector]] = {
        "dissector linear": lambda: Validity(**classifiers),
        "dissector log": lambda: LogarithmicValidity(**classifiers),
        "dissector exp": lambda: ExponentialValidity(**classifiers),
        "max softmax": MaxSoftmax,
        "max logit": MaxLogit,
        "energy": Energy,
        "Mahalanobis": lambda: Mahalanobis.fit(features, labels),
        "relative Mahalanobis": lambda: RelativeMahalanobis.fit(features, labels),
        "nearest neighbors": lambda: NearestNeighbors.fit(features, seed),
        "ViM": lambda: VirtualLogit.fit(features, logits),
        "DDU": lambda: FeatureDensity.fit(features, labels),
    }
    fitted: dict[str, Detector] = {}
    notes: list[str] = []
    for name, fit in fits.items():
        try:
            fitted[name] = fit()
        except (ValueError, RuntimeError) as error:
            notes.append(f"{name}: {error}")
    return fitted, tuple(notes)
