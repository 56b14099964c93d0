"""Moves tensors that are not needed for a while to CPU memory.

Tensors that a forward pass saves for backward are moved out immediately and fetched shortly before backward needs
them, in reverse order. On a GPU, both copies use a separate stream and pinned memory.

Source: torch's documentation, "Hooks for autograd saved tensors" and "CUDA semantics", streams.
"""

from __future__ import annotations

import time
import weakref
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import Optimizer

from epochzero.errors import InputError
from epochzero.run.memory.limit import in_host_memory, limit_here


def to_host(tensor: Tensor) -> Tensor:
    """Return a copy in CPU memory, complete on return."""
    with in_host_memory():
        return tensor.detach().to("cpu", copy=True)


class offload:  # noqa: N801 - used as a function is, in ``with``
    """Within ``with``, move large tensors that are saved for backward to CPU memory.

    >>> with epochzero.memory.offload(model.encoder, optimizer) as moved:  # doctest: +SKIP
    ...     loss = model(batch)
    ...     loss.backward()
    ...     optimizer.step()
    >>> moved.bytes_out, moved.seconds  # doctest: +SKIP
    (201326592, 0.021)

    Weights are not moved. Without a GPU nothing is moved, except within `simulated_limit`.

    Args:
        cold: modules, whose forward passes' saved tensors are moved, and optimizers, whose states are moved except
            during their steps; without modules, all tensors saved within ``with`` are moved.
        smallest: smallest size in bytes of a tensor that is moved; moving a smaller one costs more than it saves.
        ahead: number of tensors that are fetched before backward needs them.

    Attributes:
        bytes_out: bytes moved to the CPU so far.
        bytes_back: bytes moved back so far.
        seconds: time that the program itself spent; copies that overlap with other work of the GPU do not count.
    """

    def __init__(
        self, *cold: nn.Module | Optimizer, smallest: int = 1 << 20, ahead: int = 2
    ) -> None:
        """Create the context; moving starts with ``with``.

        Raises:
            InputError: an argument is neither a module nor an optimizer, or a number is negative.
        """
        for value in cold:
            if not isinstance(value, nn.Module | Optimizer):
                raise InputError(
                    f"offload: {type(value).__name__} is neither a module nor an optimizer"
                )
        if smallest < 0 or ahead < 0:
            raise InputError("offload: smallest and ahead must not be negative")
        self.bytes_out = self.bytes_back = 0
        self.seconds = 0.0
        self._modules = [module for module in cold if isinstance(module, nn.Module)]
        self._states = [OptimizerStates(v, smallest) for v in cold if isinstance(v, Optimizer)]
        self._smallest = smallest
        self._ahead = ahead
        self._waiting: list[weakref.ref[_OffloadedTensor]] = []
        self._streams: dict[torch.device, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> offload:
        for states in self._states:
            states.begin()
        if not self._modules:
            self._stack.enter_context(self._hooks())
        for module in self._modules:
            self._of_forward(module)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stack.close()
        for states in self._states:
            states.end()
            self.bytes_out += states.bytes_out
            self.bytes_back += states.bytes_back
            self.seconds += states.seconds

    def _hooks(self) -> saved_tensors_hooks:
        return saved_tensors_hooks(self._pack, self._unpack)

    def _of_forward(self, module: nn.Module) -> None:
        """Use the hooks only within the module's forward pass."""
        entered: list[saved_tensors_hooks] = []

        def begin(*_: Any) -> None:
            entered.append(self._hooks())
            entered[-1].__enter__()

        def end(*_: Any) -> None:
            if entered:
                entered.pop().__exit__()

        before = module.register_forward_pre_hook(begin)
        after = module.register_forward_hook(end, always_call=True)
        self._stack.callback(before.remove)
        self._stack.callback(after.remove)

    def _pack(self, tensor: Tensor) -> Tensor | _OffloadedTensor:
        if tensor.nbytes < self._smallest or not _is_cold(tensor):
            return tensor
        began = time.perf_counter()
        moved = self._known(tensor)
        if moved is None:
            moved = _OffloadedTensor(tensor, self._stream(tensor.device), len(self._waiting))
            self._waiting.append(weakref.ref(moved))
            self.bytes_out += tensor.nbytes
        self.seconds += time.perf_counter() - began
        return moved

    def _unpack(self, packed: Tensor | _OffloadedTensor) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        began = time.perf_counter()
        tensor = packed.fetched()
        self.bytes_back += tensor.nbytes
        for index in range(packed.index - 1, max(packed.index - 1 - self._ahead, -1), -1):
            if (soon := self._waiting[index]()) is not None:
                soon.fetch()
        self.seconds += time.perf_counter() - began
        return tensor

    def _known(self, tensor: Tensor) -> _OffloadedTensor | None:
        """Return the moved copy of the same values: several operations may save them in succession."""
        for reference in self._waiting[: -1 - _SAME : -1]:
            if (moved := reference()) is not None and moved.is_of(tensor):
                return moved
        return None

    def _stream(self, device: torch.device) -> Any:
        if device.type != "cuda":
            return None
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        return self._streams[device]


_SAME = 8
"""Number of preceding tensors that are compared with a new one."""


class _OffloadedTensor:
    """A tensor in CPU memory, with the means to restore it."""

    def __init__(self, tensor: Tensor, stream: Any, index: int) -> None:
        self.index = index
        self._device = tensor.device
        self._stream = stream
        self._back: Tensor | None = None
        self._source = weakref.ref(tensor.untyped_storage())
        self._view = _view(tensor)
        if stream is None:
            self._host = to_host(tensor)
            return
        self._host = torch.empty_like(tensor, device="cpu", pin_memory=True, requires_grad=False)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._host.copy_(tensor.detach(), non_blocking=True)
        tensor.record_stream(stream)

    def is_of(self, tensor: Tensor) -> bool:
        """Whether these are the values of a tensor that has not changed since."""
        return self._source() is tensor.untyped_storage() and self._view == _view(tensor)

    def fetch(self) -> None:
        """Start copying back."""
        if self._back is not None:
            return
        if self._stream is None:
            self._back = self._host.clone()
            return
        with torch.cuda.stream(self._stream):
            self._back = self._host.to(self._device, non_blocking=True)

    def fetched(self) -> Tensor:
        """Return the tensor on its device, for the operation that needs it now."""
        self.fetch()
        back, self._back = self._back, None
        assert back is not None
        if self._stream is not None:
            current = torch.cuda.current_stream(self._device)
            current.wait_stream(self._stream)
            back.record_stream(current)
        return back


class OptimizerStates:
    """Keeps the states of an optimizer in CPU memory except during its steps.

    Attributes:
        bytes_out, bytes_back, seconds: as for `offload`.
    """

    def __init__(self, optimizer: Optimizer, smallest: int = 1 << 20) -> None:
        self.bytes_out = self.bytes_back = 0
        self.seconds = 0.0
        self._optimizer = optimizer
        self._smallest = smallest
        self._away: list[tuple[dict[str, Any], str, torch.device]] = []
        self._hooks: list[Any] = []

    def begin(self) -> None:
        """Move existing states out now and after each step."""
        if self._hooks:
            return
        self._hooks.append(self._optimizer.register_step_pre_hook(lambda *_: self._bring()))
        self._hooks.append(self._optimizer.register_step_post_hook(lambda *_: self._move()))
        self._move()

    def end(self) -> None:
        """Move all states back and remove the hooks."""
        while self._hooks:
            self._hooks.pop().remove()
        self._bring()

    @torch.no_grad()
    def _move(self) -> None:
        began = time.perf_counter()
        for state in self._optimizer.state.values():
            for name, value in state.items():
                large = isinstance(value, Tensor) and value.nbytes >= self._smallest
                if large and _is_cold(value):
                    self._away.append((state, name, value.device))
                    state[name] = to_host(value)
                    self.bytes_out += value.nbytes
        self.seconds += time.perf_counter() - began

    @torch.no_grad()
    def _bring(self) -> None:
        began = time.perf_counter()
        while self._away:
            state, name, device = self._away.pop()
            value = state[name]
            state[name] = value.to(device, copy=True)
            self.bytes_back += value.nbytes
        self.seconds += time.perf_counter() - began


def _is_cold(tensor: Tensor) -> bool:
    """Whether moving saves device memory: not for weights, expanded tensors and CPU tensors."""
    base = tensor if tensor._base is None else tensor._base
    if base.is_leaf and base.requires_grad:
        return False
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        return False
    return tensor.is_cuda or limit_here() is not None


def _view(tensor: Tensor) -> tuple[object, ...]:
    return (tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor._version)
