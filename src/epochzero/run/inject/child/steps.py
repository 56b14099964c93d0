"""Counts the steps of a PyTorch training and triggers the faults that are due at one.

A step starts with its forward pass and ends with the optimizer's step. Of several optimizers, the one with the most
steps counts. A training without modules is observed only at its optimizer's step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epochzero.run.inject.child.faults import PlannedFault, as_of_python

_GIB = 1 << 30
_PRETENDED_GIB = 80
"""Memory that a simulated GPU reports."""
_TRIED_GIB = 2


class Steps:
    """The steps of this process."""

    def __init__(self, torch: Any, faults: Sequence[PlannedFault]) -> None:
        self._torch = torch
        self._waiting = [fault for fault in faults if fault.step is not None]
        self._made: dict[int, int] = {}
        self._seen = 0

    def count(self) -> None:
        """Count until the end of the process."""
        from torch.nn.modules.module import register_module_forward_pre_hook
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        def forward(module: Any, values: Any) -> None:
            if self._torch.is_grad_enabled():
                self._begins()

        def steps(optimizer: Any, values: Any, named: Any) -> None:
            self._begins()

        def stepped(optimizer: Any, values: Any, named: Any) -> None:
            self._made[id(optimizer)] = self._made.get(id(optimizer), 0) + 1

        register_module_forward_pre_hook(as_of_python(forward))
        register_optimizer_step_pre_hook(as_of_python(steps))
        register_optimizer_step_post_hook(stepped)

    @as_of_python
    def _begins(self) -> None:
        """Trigger the faults of this step, once."""
        step = max(self._made.values(), default=0) + 1
        if step == self._seen:
            return
        self._seen = step
        came = [fault for fault in self._waiting if fault.come_to(step)]
        for fault in came:
            if fault.name == "oom":
                fault.meets(f"the forward pass of step {step} ran out of memory")
                raise self._torch.OutOfMemoryError(self._words())

    def _words(self) -> str:
        """Return torch's message for a full GPU (c10/cuda/CUDACachingAllocator.cpp)."""
        cuda = self._torch.cuda
        total, used = float(_PRETENDED_GIB), _PRETENDED_GIB - 1.25
        if cuda.is_available():
            total = cuda.get_device_properties(0).total_memory / _GIB
            used = max(0.0, total - 1.25)
        return (
            f"CUDA out of memory. Tried to allocate {_TRIED_GIB:.2f} GiB. GPU 0 has a total capacity of"
            f" {total:.2f} GiB of which {total - used:.2f} GiB is free. Including non-PyTorch memory, this"
            f" process has {used:.2f} GiB memory in use. Of the allocated memory {used - 1:.2f} GiB is"
            " allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated. If reserved but"
            " unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to"
            " avoid fragmentation.  See documentation for Memory Management "
            " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        )
