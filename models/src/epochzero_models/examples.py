"""Labeled examples in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from epochzero.errors import InputError


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with their labels.

    Attributes:
        name: as given by the user.
        inputs: shape (n, ...), float32, or int64 for tokens.
        labels: shape (n,), int64, from 0.
        columns: names of the inputs of a table; empty for other data.
        groups: subgroup of each example; empty if none were requested.
        classes: texts or directories that were numbered as labels, in that order; empty for labels that are numbers.
    """

    name: str
    inputs: Tensor
    labels: Tensor
    columns: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject examples that no test can use.

        Raises:
            InputError: there are none, their numbers differ, or an input is not finite.
        """
        if not len(self.inputs):
            raise InputError(f"{self.name} has no examples")
        if self.inputs.ndim < 2 or self.labels.ndim != 1:
            raise InputError(
                f"{self.name}: expected inputs of shape (n, ...) and labels of shape (n,), not "
                f"{tuple(self.inputs.shape)} and {tuple(self.labels.shape)}"
            )
        if len(self.inputs) != len(self.labels):
            raise InputError(
                f"{self.name} has {len(self.inputs):,} inputs but {len(self.labels):,} labels"
            )
        if self.inputs.is_floating_point():
            self._check_finite()

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor) -> Examples:
        """Return the examples at these indices, in that order."""
        groups = tuple(self.groups[at] for at in indices.tolist()) if self.groups else ()
        return replace(
            self, inputs=self.inputs[indices], labels=self.labels[indices], groups=groups
        )

    def halves(self, seed: int) -> tuple[Examples, Examples]:
        """Return two random parts of equal size.

        Raises:
            InputError: there are fewer than two examples.
        """
        if len(self) < 2:
            raise InputError(f"{self.name} contains only one example and cannot be split")
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(self)))
        half = len(self) // 2
        return self.take(order[:half].sort().values), self.take(order[half:].sort().values)

    def drawn(self, most: int | None, seed: int) -> Examples:
        """Return a random sample of at most this many examples, in their order."""
        if most is None or len(self) <= most:
            return self
        chosen = np.sort(np.random.default_rng(seed).choice(len(self), most, replace=False))
        return self.take(torch.from_numpy(chosen))

    def _check_finite(self) -> None:
        bad = ~self.inputs.flatten(1).isfinite()
        if not bad.any():
            return
        row, column = (int(at) for at in bad.nonzero()[0])
        where = f", column {self.columns[column]!r}" if self.columns else ""
        raise InputError(
            f"{self.name}: {int(bad.any(dim=1).sum()):,} of {len(self):,} inputs contain NaN or infinity, the "
            f"first of them example {row + 1}{where}; remove or replace them"
        )
