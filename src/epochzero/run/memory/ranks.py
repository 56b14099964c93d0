"""Keeps the ranks of a job in step when one of them runs out of memory.

A rank that fails within a collective leaves the others waiting forever. Therefore a try communicates nothing: each
step starts and ends with an exchange that every rank reaches, and DDP averages gradients between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from epochzero.errors import InputError

_EXCHANGING = {
    "FullyShardedDataParallel": "gathers weights within forward and backward",
    "FSDPModule": "gathers weights within forward and backward",
    "DeepSpeedEngine": "gathers weights and gradients within forward and backward",
    "SyncBatchNorm": "exchanges statistics within forward and backward",
    "PipelineStage": "sends activations within forward and backward",
}
"""Module classes that communicate in the middle of a try, and what they exchange."""


class Ranks:
    """This process among those of the same training; for a single process every method does nothing."""

    def __init__(self, model: nn.Module) -> None:
        """Prepare the exchange.

        Raises:
            InputError: the model communicates at a point where a rank may fail.
        """
        for module in model.modules():
            for base in type(module).__mro__:
                if base.__name__ in _EXCHANGING and self._several():
                    raise InputError(
                        f"{base.__name__} {_EXCHANGING[base.__name__]}: a rank that runs out of memory there leaves the "
                        "others waiting, so its step cannot be repeated"
                    )
        self._parallel = model if isinstance(model, DistributedDataParallel) else None
        if self._parallel is not None and self._parallel.static_graph:
            raise InputError(
                "DDP with static_graph=True cannot accumulate gradients: remove static_graph"
            )

    @staticmethod
    def _several() -> bool:
        return (
            distributed.is_available()
            and distributed.is_initialized()
            and distributed.get_world_size() > 1
        )

    @property
    def first(self) -> bool:
        """Whether this process reports for all."""
        return not self._several() or distributed.get_rank() == 0

    def largest(self, *numbers: int) -> list[int]:
        """Return, for each number, its maximum over the ranks. All ranks must call this at the same point."""
        if not self._several():
            return list(numbers)
        nccl = distributed.get_backend() == "nccl"
        device = torch.device("cuda", torch.cuda.current_device()) if nccl else "cpu"
        values = torch.tensor(numbers, dtype=torch.int64, device=device)
        distributed.all_reduce(values, distributed.ReduceOp.MAX)
        return [int(value) for value in values.tolist()]

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step of all ranks: DDP communicates nothing within it and averages gradients at its end.

        Within the user's own ``no_sync``, gradients are not averaged.
        """
        parallel = self._parallel
        if parallel is None:
            yield
            return
        average = parallel.require_backward_grad_sync
        parallel.require_backward_grad_sync = False
        try:
            parallel.require_forward_param_sync = average
            self._pass([])  # broadcasts buffers and the arrangement of buckets
            parallel.require_forward_param_sync = False
            yield
        finally:
            parallel.require_backward_grad_sync = average
        if average:
            unused = parallel.find_unused_parameters
            trained = (
                parameter for parameter in parallel.module.parameters() if parameter.requires_grad
            )
            loss = self._pass([value for value in trained if value.grad is not None or not unused])
            loss.backward()  # type: ignore[no-untyped-call]

    def _pass(self, parameters: list[nn.Parameter]) -> Tensor:
        """Run a forward pass of DDP with a loss of zero: its backward averages the accumulated gradients."""
        parallel = self._parallel
        assert parallel is not None
        module = parallel.module
        parallel.module = _Zero(parameters)
        try:
            result: Tensor = parallel()
        finally:
            parallel.module = module
        return result


class _Zero(nn.Module):
    """Returns zero that depends on all parameters."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__()
        self._all: Any = tuple(parameters)

    def forward(self) -> Tensor:
        return 0 * sum((value.sum() for value in self._all), torch.zeros(()))
