"""A plan as a torch module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from epochzero.errors import InputError
from epochzero_models.generate.plan import MOST_PARAMETERS, NetworkPlan

_OPERATIONS: Mapping[str, Callable[..., Tensor]] = {
    "relu": functional.relu,
    "sum": torch.add,
    "concat": lambda *values: torch.cat(values, dim=1),
    "flatten": lambda value: torch.flatten(value, 1),
}


class Network(nn.Module):
    """Runs a plan: images of shape (n, channels, height, width) to logits of shape (n, classes)."""

    def __init__(self, plan: NetworkPlan) -> None:
        """Create the layers with random weights.

        Raises:
            InputError: it has more than `MOST_PARAMETERS`.
        """
        if plan.parameters > MOST_PARAMETERS:
            raise InputError(
                f"a network of {plan.parameters:,} parameters is refused; the most are {MOST_PARAMETERS:,}"
            )
        super().__init__()
        self.plan = plan
        for layer in plan.layers:
            self.add_module(layer.name, getattr(nn, layer.module)(**layer.arguments))

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        values = {0: inputs}
        for step in self.plan.steps:
            operation = _OPERATIONS.get(step.operation) or getattr(self, step.operation)
            values[step.output] = operation(*(values[number] for number in step.inputs))
        return values[self.plan.steps[-1].output]
