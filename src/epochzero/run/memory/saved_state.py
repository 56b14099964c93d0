"""The state that a failed try may have changed, stored so that it can be restored."""

from __future__ import annotations

import gc
import random
import sys
import traceback
from typing import Any

import torch
from torch import nn

from epochzero.run.memory.offload import to_host

_WORDS = (
    "out of memory",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "DefaultCPUAllocator: can't allocate memory",
)
"""Messages of libraries without an exception class. Source: torch's CUDAException.h, c10's CPU allocator."""


class Before:
    """Gradients, buffers and random states at the time of creation.

    Existing gradients are stored in CPU memory: undoing must not need the memory that ran out.
    """

    def __init__(self, model: nn.Module) -> None:
        self._gradients = [
            (parameter, None if parameter.grad is None else to_host(parameter.grad))
            for parameter in model.parameters()
            if parameter.requires_grad
        ]
        self._versions = self._gradient_versions()
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
        self._random = random_states()

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the stored state."""
        for parameter, gradient in self._gradients:
            if gradient is None or parameter.grad is None:
                parameter.grad = None if gradient is None else gradient.to(parameter.device)
            else:
                parameter.grad.copy_(gradient)
        for buffer, value in self._buffers:
            buffer.copy_(value)
        set_random_states(self._random)
        self._versions = self._gradient_versions()

    def gradients_changed(self) -> bool:
        """Whether a gradient was created or changed since."""
        return self._gradient_versions() != self._versions

    def _gradient_versions(self) -> list[int | None]:
        gradients = (parameter.grad for parameter, _ in self._gradients)
        return [None if gradient is None else gradient._version for gradient in gradients]


def random_states() -> dict[str, Any]:
    """Return the random states of Python, torch, the current GPU, and NumPy if it is used."""
    states: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if (numpy := sys.modules.get("numpy")) is not None:
        states["numpy"] = numpy.random.get_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Restore the states that `random_states` returned."""
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "numpy" in states:
        sys.modules["numpy"].random.set_state(states["numpy"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory has run out, according to torch or a library that it uses."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in _WORDS)


def free_memory(error: BaseException | None) -> None:
    """Release what the frames of an error and caches hold. The traceback stays readable."""
    if error is not None:
        traceback.clear_frames(error.__traceback__)
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()
