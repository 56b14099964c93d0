"""The model under test, asked about levels: the one check of what is discriminatory, and gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from epochzero.errors import InputError
from epochzero.models.classifier import Classifier
from epochzero.models.fairness.domain import Domain

__all__ = ["Judged", "Subject"]

ROWS = 1 << 16
"""So many inputs at most are given to the model at once."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What the model says of inputs and of their variants.

    Attributes:
        discriminates: whether a variant gets another class, shape (n,).
        partner: the variant whose probabilities differ most, of those with another class where there are any;
            levels, shape (n, attributes).
        output, other: the classes of the input and of its partner, shape (n,).
    """

    discriminates: Tensor
    partner: Tensor
    output: Tensor
    other: Tensor


@dataclass(frozen=True, eq=False)
class Subject:
    """A classifier with the domain of its inputs."""

    classifier: Classifier
    domain: Domain

    def judge(self, levels: Tensor) -> Judged:
        """Compares each input with all variants of its protected attributes.

        Args:
            levels: shape (n, attributes).

        Raises:
            InputError: the model fails, or gives NaN.
        """
        size = max(1, ROWS // len(self.domain.variants))
        parts = [self._judged(part) for part in torch.split(levels, size)]
        if len(parts) == 1:
            return parts[0]
        return Judged(*(
            torch.cat([getattr(one, name) for one in parts])
            for name in ("discriminates", "partner", "output", "other")
        ))  # fmt: skip

    def outputs(self, levels: Tensor) -> Tensor:
        """The classes that the model gives, shape (n,)."""
        return torch.cat([
            self._probabilities(part).argmax(dim=1) for part in torch.split(levels, ROWS)
        ])  # fmt: skip

    def gradients(self, levels: Tensor) -> Tensor:
        """How the loss of the predicted class grows with a step of each attribute, shape (n, attributes).

        Raises:
            InputError: the model has no gradients.
        """
        self.classifier.differentiable()
        inputs = self.domain.inputs(levels).requires_grad_()
        with torch.enable_grad():
            logits = self.classifier.logits(inputs)
            if not logits.requires_grad:
                raise InputError(
                    f"{self.classifier.name}: its outputs do not depend on its inputs by gradients"
                )
            loss = functional.cross_entropy(logits, logits.argmax(dim=1), reduction="sum")
            (gradient,) = torch.autograd.grad(loss, inputs)
        return gradient.cpu() * self.domain.step_sizes

    def _judged(self, levels: Tensor) -> Judged:
        domain = self.domain
        count, variants = len(levels), len(domain.variants)
        every = levels[:, None].repeat(1, variants, 1)
        every[:, :, list(domain.protected)] = domain.variants
        probabilities = self._probabilities(every.flatten(0, 1)).view(count, variants, -1)
        classes = probabilities.argmax(dim=2)
        rows, own = torch.arange(count), domain.variant_of(levels)
        output = classes[rows, own]
        differs = classes != output[:, None]
        distance = (probabilities - probabilities[rows, own][:, None]).abs().amax(dim=2)
        distance = distance + differs
        # Never the input itself, even where all variants are judged the same.
        distance[rows, own] = -1.0
        partner = distance.argmax(dim=1)
        return Judged(differs.any(dim=1), every[rows, partner], output, classes[rows, partner])

    def _probabilities(self, levels: Tensor) -> Tensor:
        with torch.no_grad():
            found = self.classifier.logits(self.domain.inputs(levels)).softmax(dim=1).cpu()
        if not found.isfinite().all():
            at = int((~found.isfinite().all(dim=1)).nonzero()[0])
            told = ", ".join(
                f"{one.name}={one.shown(int(level))}"
                for one, level in zip(self.domain.attributes, levels[at], strict=True)
            )
            raise InputError(f"{self.classifier.name}: gives NaN or infinity for {told}")
        return found
