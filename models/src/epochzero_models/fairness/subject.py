"""The model under test with its domain: the one check of what is discriminatory, and gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from epochzero.errors import InputError
from epochzero_models.classifier import Classifier
from epochzero_models.fairness.domain import Domain

ROWS = 1 << 16
"""Maximum number of inputs per batch."""
PAIR = 2
"""With this many variants, there is no other one to ask first."""


@dataclass(frozen=True, eq=False)
class Judged:
    """The model's classes of inputs and of their variants.

    Attributes:
        discriminates: whether a variant gets another class, shape (n,).
        partner: the variant whose probabilities differ most, among those with another class if there are any;
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

    def judge(self, levels: Tensor, likely: Tensor | None = None) -> Judged:
        """Compare each input with all variants of its protected attributes.

        Args:
            levels: shape (n, attributes).
            likely: for each input, a variant that probably gets another class, same shape. The other variants are
                evaluated only if it does not.

        Raises:
            InputError: the model fails, or returns NaN.
        """
        if likely is not None and len(self.domain.variants) > PAIR:
            return self._judged_likely(levels, likely)
        size = max(1, ROWS // len(self.domain.variants))
        parts = [self._judged(part) for part in torch.split(levels, size)]
        if len(parts) == 1:
            return parts[0]
        return Judged(*(
            torch.cat([getattr(part, name) for part in parts])
            for name in ("discriminates", "partner", "output", "other")
        ))  # fmt: skip

    def outputs(self, levels: Tensor) -> Tensor:
        """Return the predicted classes, shape (n,)."""
        return torch.cat([
            self.probabilities(self.domain.inputs(part)).argmax(dim=1)
            for part in torch.split(levels, ROWS)
        ])  # fmt: skip

    def no_gradients(self, levels: Tensor) -> str:
        """Return why the model has no gradients, tested with an input, shape (1, attributes); empty if it has."""
        try:
            self.gradients(levels)
        except InputError as error:
            return str(error)
        return ""

    def gradients(self, levels: Tensor) -> Tensor:
        """Return how the log odds against the predicted class grow with a step of each attribute.

        They point in the direction of the gradient of the predicted class's loss, whose sign is lost if the model is so
        certain that the loss is 0.

        Returns:
            Shape (n, attributes).

        Raises:
            InputError: the model has no gradients.
        """
        self.classifier.differentiable()
        inputs = self.domain.inputs(levels).requires_grad_()
        with torch.enable_grad():
            logits = self.classifier.logits(inputs)
            if not logits.requires_grad:
                raise InputError(
                    f"{self.classifier.name}: its outputs have no gradients with respect to its inputs"
                )
            predicted = functional.one_hot(logits.argmax(dim=1), logits.shape[1]).bool()
            against = logits.masked_fill(predicted, -torch.inf).logsumexp(dim=1) - logits[predicted]
            (gradient,) = torch.autograd.grad(against.sum(), inputs)
        return gradient.cpu() * self.domain.step_sizes

    def _judged_likely(self, levels: Tensor, likely: Tensor) -> Judged:
        output, partner = self.outputs(levels), likely.clone()
        other = self.outputs(likely)
        left = output == other
        discriminates = ~left
        if not left.any():
            return Judged(discriminates, partner, output, other)
        rest = self.judge(levels[left])
        discriminates[left], partner[left], other[left] = (
            rest.discriminates,
            rest.partner,
            rest.other,
        )
        return Judged(discriminates, partner, output, other)

    def _judged(self, levels: Tensor) -> Judged:
        domain = self.domain
        count, variants = len(levels), len(domain.variants)
        every = domain.inputs(levels)[:, None].repeat(1, variants, 1)
        every[:, :, list(domain.protected)] = domain.variant_inputs
        probabilities = self.probabilities(every.flatten(0, 1)).view(count, variants, -1)
        classes = probabilities.argmax(dim=2)
        rows, own = torch.arange(count), domain.variant_of(levels)
        output = classes[rows, own]
        differs = classes != output[:, None]
        distance = (probabilities - probabilities[rows, own][:, None]).abs().amax(dim=2)
        distance = distance + differs
        # Never the input itself, even if all variants get the same class.
        distance[rows, own] = -1.0
        partner = distance.argmax(dim=1)
        return Judged(
            differs.any(dim=1),
            domain.with_variant(levels, partner),
            output,
            classes[rows, partner],
        )

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Return the probabilities of the classes on the CPU, shape (n, classes).

        Raises:
            InputError: the model fails, or returns NaN.
        """
        with torch.no_grad():
            found = self.classifier.logits(inputs).softmax(dim=1).cpu()
        if not found.isfinite().all():
            at = int((~found.isfinite().all(dim=1)).nonzero()[0])
            levels = self.domain.levels(inputs[at : at + 1])[0]
            person = ", ".join(
                f"{attribute.name}={attribute.shown(int(level))}"
                for attribute, level in zip(self.domain.attributes, levels, strict=True)
            )
            raise InputError(f"{self.classifier.name}: returns NaN or infinity for {person}")
        return found
