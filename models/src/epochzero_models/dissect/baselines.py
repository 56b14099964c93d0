"""What DISSECTOR is compared with: scores that are larger for inputs within the model's reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


def max_softmax(logits: Tensor) -> Tensor:
    """The largest probability, shape (n,). Hendrycks and Gimpel (ICLR 2017)."""
    return logits.softmax(dim=1).max(dim=1).values


def energy(logits: Tensor) -> Tensor:
    """The negative free energy at temperature 1, shape (n,). Liu et al. (NeurIPS 2020), equation 4.

    Of a model that gives probabilities it is the same for all inputs.
    """
    return logits.logsumexp(dim=1)


Mahalanobis = Callable[[Tensor], Tensor]
"""Features, shape (n, features) -> negative squared distance to the nearest class, shape (n,)."""


@dataclass(frozen=True, eq=False)
class _Means:
    """Class means, shape (classes, features), in a space where the shared covariance is one."""

    whitening: Tensor
    means: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        white = features.double() @ self.whitening
        return -torch.cdist(white, self.means).square().min(dim=1).values


def fit_mahalanobis(features: Tensor, labels: Tensor) -> Mahalanobis:
    """Class means with one covariance of all classes. Lee et al. (NeurIPS 2018), section 2.1.

    Directions in which the training data do not vary are left out (pseudo-inverse).

    Args:
        features: of the training data, before the outputs, shape (n, features).
        labels: shape (n,).
    """
    wide = features.double()
    classes = labels.bincount().nonzero()[:, 0]
    means = torch.stack([wide[labels == class_].mean(dim=0) for class_ in classes])
    centered = wide - means[torch.searchsorted(classes, labels)]
    values, vectors = torch.linalg.eigh(centered.T @ centered / len(wide))
    known = values > values[-1] * 1e-9
    whitening = vectors[:, known] / values[known].sqrt()
    return _Means(whitening, means @ whitening)
