"""A job that asks for a GPU, run with true values on the CPU: what it puts on ``cuda`` stays there.

To the job's own code `torch.cuda` answers as on the platform; to libraries, which would reach for the
driver, there is none. It lasts until the process ends.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
import torch.distributed
from torch.distributed.device_mesh import DeviceMesh
from torch.overrides import TorchFunctionMode

from epochzero.injected.compilation import leave_uncompiled
from epochzero.injected.gpus.device import pretended

Assume = Callable[[str], None]
IsOwn = Callable[[str], bool]
MOVED = "tensors and modules sent to the GPU stay on the CPU"

_kept = ExitStack()


def install(
    gpus: Sequence[Mapping[str, Any]],
    is_own: IsOwn,
    assume: Assume,
    memory: Callable[[], tuple[int, int]] = lambda: (0, 0),
) -> None:
    """Keep everything on the CPU from here on.

    Args:
        gpus: that the job's own code sees, as `fake.enter` takes them.
        is_own: whether a file is one of the user's code.
        assume: called once for each thing that differs from the platform.
        memory: gives the bytes that are allocated on the current GPU now, and the most that were.
    """
    assume_once = functools.lru_cache(maxsize=None)(assume)
    libraries = {
        (owner, name): getattr(owner, name)
        for owner in (torch.cuda, torch.accelerator)
        for name in ("is_available", "device_count", "current_accelerator")
        if hasattr(owner, name)
    }
    _kept.enter_context(pretended(gpus, memory, lambda: None))
    for (owner, name), answer in libraries.items():
        setattr(owner, name, _by_caller(getattr(owner, name), answer, is_own))
    _kept.enter_context(_OnCpu(assume_once))
    torch.load = _loading_to_cpu(torch.load)
    torch.nn.Module.to = _moving(torch.nn.Module.to)  # type: ignore[method-assign]
    torch.set_default_device = _without_device(torch.set_default_device)
    leave_uncompiled(torch, assume_once)
    _spread_on_cpu(assume_once)


class _OnCpu(TorchFunctionMode):
    """Every device ``cuda`` that a function of torch is given becomes ``cpu``."""

    def __init__(self, assume_once: Assume) -> None:
        super().__init__()
        self._assume_once = assume_once

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.cuda:
            self._assume_once(MOVED)
            return args[0]
        options = kwargs or {}
        if function is torch.Tensor.to:
            args = (args[0], *map(_numbered, args[1:]))
        if any(map(_is_gpu, args)) or any(map(_is_gpu, options.values())):
            self._assume_once(MOVED)
            args = tuple(map(_on_cpu, args))
            options = {name: _on_cpu(value) for name, value in options.items()}
        return function(*args, **options)


def _is_gpu(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.partition(":")[0] == "cuda"


def _numbered(value: Any) -> Any:
    """A device that is given by its number alone."""
    return torch.device("cuda", value) if type(value) is int else value


def _on_cpu(value: Any) -> Any:
    return "cpu" if _is_gpu(value) else value


def _by_caller(theirs: Any, libraries: Any, is_own: IsOwn) -> Any:
    """One answer for the user's code, another for libraries."""

    @functools.wraps(libraries)
    def answer(*arguments: Any, **options: Any) -> Any:
        own = is_own(sys._getframe(1).f_code.co_filename)
        return (theirs if own else libraries)(*arguments, **options)

    return answer


def _loading_to_cpu(load: Callable[..., Any]) -> Any:
    @functools.wraps(load)
    def loading(file: Any, map_location: Any = None, *arguments: Any, **options: Any) -> Any:
        return load(file, "cpu", *arguments, **options)

    return loading


def _moving(move: Callable[..., Any]) -> Any:
    @functools.wraps(move)
    def moving(self: Any, *arguments: Any, **options: Any) -> Any:
        places = map(_on_cpu, map(_numbered, arguments))
        return move(self, *places, **{name: _on_cpu(value) for name, value in options.items()})

    return moving


def _without_device(set_device: Callable[..., Any]) -> Any:
    @functools.wraps(set_device)
    def setting(device: Any) -> None:
        set_device(_on_cpu(device))

    return setting


def _spread_on_cpu(assume_once: Assume) -> None:
    """Processes talk through gloo, and models that are spread lie on the CPU."""
    start = torch.distributed.init_process_group
    parallel = torch.nn.parallel.DistributedDataParallel
    make, mesh = parallel.__init__, DeviceMesh.__init__

    @functools.wraps(start)
    def starting(backend: Any = None, *arguments: Any, **options: Any) -> None:
        if backend is None or "nccl" in backend:
            assume_once("processes communicate through gloo")
            backend = "gloo"
        options.pop("device_id", None)
        start(backend, *arguments, **options)

    @functools.wraps(make)
    def making(self: Any, module: Any, *arguments: Any, **options: Any) -> None:
        if options.pop("device_ids", None) is not None or options.pop("output_device", None):
            assume_once(MOVED)
        make(self, module, *arguments[2:], **options)

    @functools.wraps(mesh)
    def meshing(self: Any, device_type: Any, *arguments: Any, **options: Any) -> None:
        mesh(self, _on_cpu(device_type), *arguments, **options)

    DeviceMesh.__init__ = meshing  # type: ignore[method-assign]
    torch.distributed.init_process_group = starting
    torch.distributed.distributed_c10d.init_process_group = starting
    parallel.__init__ = making  # type: ignore[method-assign]
