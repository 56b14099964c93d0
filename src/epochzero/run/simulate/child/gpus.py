"""The platform's GPUs for a PyTorch program: what it puts on them is computed by the processor.

To the program, a tensor is on the GPU where it put it, and what is computed of it is there too. What is put
there is counted (`memory`). bfloat16 and flash attention are refused, in torch's words, where the GPU has none.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from epochzero.injected.gpus import cpu_execution
from epochzero.run.simulate.child.begin import request_of
from epochzero.run.simulate.child.memory import HOST, MemoryCounter

_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_AMPERE = (8, 0)
_NO_BFLOAT16 = "Current CUDA Device does not support bfloat16. Please switch dtype to float16."
_TWO_DEVICES = "Expected all tensors to be on the same device, but found at least two devices, cuda:{} and cuda:{}!"
# Functions that compute from all their tensors; others, such as copy_, take those of two devices.
_COMPUTE = frozenset(
    ("add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_", "true_divide", "pow", "maximum", "minimum",
     "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__isub__", "__mul__", "__rmul__", "__imul__",
     "__truediv__", "__rtruediv__", "__itruediv__", "__matmul__", "__rmatmul__", "matmul", "mm", "bmm", "addmm",
     "baddbmm", "dot", "mv", "einsum", "cat", "stack", "linear", "bilinear", "conv1d", "conv2d", "conv3d",
     "embedding", "layer_norm", "batch_norm", "cross_entropy", "nll_loss", "mse_loss", "l1_loss",
     "binary_cross_entropy", "binary_cross_entropy_with_logits", "scaled_dot_product_attention")
)  # fmt: skip
_NO_KERNEL = "No available kernel. Aborting execution."
_kept: list[Any] = []


def begin_torch(module: ModuleType, environment: Mapping[str, str]) -> None:
    """See `epochzero.injected.companions`."""
    gpus = request_of(environment)["gpus"] or []
    gpus = _visible(gpus, environment.get("CUDA_VISIBLE_DEVICES"))
    if not gpus or any(gpu["capability"] is None for gpu in gpus):
        return
    counted = MemoryCounter(
        [gpu["memory_bytes"] for gpu in gpus], lambda: torch.cuda.current_device()
    )
    move = torch.nn.Module.to
    # Libraries of training look for a GPU as the program does; torch itself would reach for the driver.
    cpu_execution.install(
        gpus, lambda path: not path.startswith(_TORCH), lambda text: None, counted.used
    )
    torch.nn.Module.to = move  # type: ignore[method-assign]
    older = tuple(gpus[0]["capability"]) < _AMPERE
    _cast_on_cpu(no_bfloat16=older)
    for mode in (counted, _OnGpu(counted, no_flash=older)):
        mode.__enter__()  # type: ignore[no-untyped-call]
        _kept.append(mode)


def _visible(gpus: Sequence[Mapping[str, Any]], chosen: str | None) -> list[Mapping[str, Any]]:
    """Those that the variable leaves; what stands behind a number that is none is not seen."""
    if chosen is None:
        return list(gpus)
    found = []
    for word in filter(None, chosen.split(",")):
        if not word.strip().isdigit() or int(word) >= len(gpus):
            break
        found.append(gpus[int(word)])
    return found


def _cast_on_cpu(*, no_bfloat16: bool) -> None:
    """`torch.autocast` of GPUs is that of the processor, and losses are scaled."""
    begin = torch.autocast.__init__

    @functools.wraps(begin)
    def beginning(self: Any, device_type: str, dtype: Any = None, *rest: Any, **named: Any) -> None:
        if device_type == "cuda":
            dtype = dtype or torch.float16
            if no_bfloat16 and dtype is torch.bfloat16:
                raise RuntimeError(_NO_BFLOAT16)
            device_type = "cpu"
        begin(self, device_type, dtype, *rest, **named)

    torch.autocast.__init__ = beginning  # type: ignore[method-assign]
    scaling = importlib.import_module("torch.cuda.amp.common")
    scaling.amp_definitely_not_available = lambda: False  # type: ignore[attr-defined]


class _OnGpu(TorchFunctionMode):
    """Knows of each function where its result lies, and answers for tensors where they are."""

    def __init__(self, counted: MemoryCounter, *, no_flash: bool) -> None:
        super().__init__()
        self._counted = counted
        self._no_flash = no_flash
        tensor: Any = torch.Tensor
        self._answers = {
            tensor.device.__get__: self._device,
            tensor.is_cuda.__get__: lambda tensor: self._at(tensor) is not None,
            tensor.get_device: lambda tensor: _number(self._at(tensor)),
        }

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        options = kwargs or {}
        if function is torch.device:
            # The program keeps the GPU that it names; what it puts there is followed from there on.
            with torch._C.DisableTorchFunction():
                return function(*args, **options)
        if type(options.get("device")) is int:
            options = {**options, "device": self._named(options["device"])}
        if function in self._answers:
            return self._answers[function](args[0])  # type: ignore[no-untyped-call]
        if function is torch.Tensor.pin_memory:
            return args[0]
        if function is torch._C._nn._parse_to:
            with torch._C.DisableTorchFunction():
                return function(*args, **options)
        if function is torch.Tensor.numpy and self._at(args[0]) is not None:
            raise TypeError(
                f"can't convert {self._device(args[0])} device type tensor to numpy. Use Tensor.cpu() "
                "to copy the tensor to host memory first."
            )
        if self._no_flash and function is torch.nn.functional.scaled_dot_product_attention:
            _has_a_kernel()
        place = _place(function, args, options)
        if place is None:
            if getattr(function, "__name__", "") in _COMPUTE:
                self._same_gpu((*args, *options.values()))
            return function(*args, **options)
        try:
            return self._placed(place, function, args, options)
        except torch.OutOfMemoryError as error:
            # Torch raises it from within: the frames are not the program's.
            raise error.with_traceback(None) from None

    def _placed(
        self, place: int, function: Any, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        with self._counted.placing(place):
            result = function(*args, **options)
            if function in _MOVES and _share(args[0], result):
                # Where it is already, it stays; else it must not share what is written to it.
                same = self._at(args[0]) == (None if place == HOST else place)
                return args[0] if same else result.clone()
            return result

    def _same_gpu(self, values: Sequence[Any]) -> None:
        """Raises what torch raises for tensors of two GPUs."""
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        if len(tensors) < 2:
            # Those of `cat` are in a list.
            lists = (value for value in values if isinstance(value, list | tuple))
            tensors += [v for each in lists for v in each if isinstance(v, torch.Tensor)]
        places = sorted({place for tensor in tensors if (place := self._at(tensor)) is not None})
        if len(places) > 1:
            raise RuntimeError(_TWO_DEVICES.format(*places))

    def _at(self, tensor: torch.Tensor) -> int | None:
        return self._counted.place_of(tensor)

    def _device(self, tensor: torch.Tensor) -> torch.device:
        place = self._at(tensor)
        if place is not None:
            return self._named(place)
        with torch._C.DisableTorchFunction():
            return tensor.device

    @staticmethod
    def _named(place: int) -> torch.device:
        with torch._C.DisableTorchFunction():
            return torch.device("cuda", place)


_MOVES = (torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu)


def _share(first: torch.Tensor, second: torch.Tensor) -> bool:
    return bool(first.untyped_storage()._cdata == second.untyped_storage()._cdata)


def _place(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> int | None:
    """The GPU, or `HOST`, that a call names; None where it names none."""
    if function is torch.Tensor.cpu:
        return HOST
    if function is torch.Tensor.cuda:
        wanted = args[1] if len(args) > 1 else options.get("device")
        return _number_of("cuda" if wanted is None else wanted)
    named = [options.get("device"), *args[1:]] if function is torch.Tensor.to else [
        value for value in (*options.values(), *args) if isinstance(value, str | torch.device)
    ]  # fmt: skip
    for value in named:
        if type(value) is int and function is torch.Tensor.to:
            return value
        if isinstance(value, torch.device | str):
            kind = value.type if isinstance(value, torch.device) else value.partition(":")[0]
            if kind == "cuda":
                return _number_of(value)
            if kind == "cpu":
                return HOST
    return None


def _number_of(device: Any) -> int:
    """Of a device as a program names it; without a number, the one that is in use."""
    number = device if isinstance(device, int) else str(device).partition(":")[2]
    return int(number) if number != "" else torch.cuda.current_device()


def _number(place: int | None) -> int:
    return -1 if place is None else place


def _has_a_kernel() -> None:
    """Without flash attention one of the others must be allowed."""
    if not (torch._C._get_mem_efficient_sdp_enabled() or torch._C._get_math_sdp_enabled()):
        raise RuntimeError(_NO_KERNEL)
