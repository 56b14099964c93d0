"""One process stands for all ranks: a group whose other members are imagined.

Collectives keep shapes, so each is done at once and changes nothing but its outputs' shapes. The buckets
of `DistributedDataParallel` are made as its reducer does it, 1 MiB first and 25 MiB from then on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map

from epochzero.injected.patches import replaced

FIRST_BUCKET_BYTES = 1 << 20  # torch/distributed: _DEFAULT_FIRST_BUCKET_BYTES


class Work:
    """A collective that is done."""

    def wait(self, *arguments: Any) -> bool:
        """Done already."""
        return True

    def is_completed(self) -> bool:
        """Done already."""
        return True

    def get_future(self) -> Any:
        """A future with its result."""
        future: Any = torch.futures.Future()
        future.set_result([])
        return future


def _done(*arguments: Any, async_op: bool = False, **options: Any) -> Any:
    return Work() if async_op else None


# Their arguments have torch's names, by which its own code gives them.
def _spread_object(object_list: list[Any], obj: Any, *arguments: Any, **options: Any) -> None:
    object_list[:] = [obj] * len(object_list)


def _gather_object(
    obj: Any, object_gather_list: Any = None, *arguments: Any, **options: Any
) -> None:
    if object_gather_list is not None:
        _spread_object(object_gather_list, obj)


def _first_object(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any],
    *arguments: Any,
    **options: Any,
) -> None:
    scatter_object_output_list[0] = scatter_object_input_list[0]


_COLLECTIVES: dict[str, Any] = {
    **dict.fromkeys(
        (
            "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter",
            "all_to_all", "all_to_all_single", "barrier", "send", "recv", "monitored_barrier",
            "all_reduce_coalesced",
        ),
        _done,
    ),
    **dict.fromkeys(("isend", "irecv"), lambda *a, **k: Work()),
    "broadcast_object_list": _done,
    "all_gather_object": _spread_object,
    "gather_object": _gather_object,
    "scatter_object_list": _first_object,
}  # fmt: skip
# With one tensor for all processes; torch 2.13 renames two of them.
_BUFFERED = (
    "all_gather_into_tensor", "all_gather_single", "reduce_scatter_tensor", "reduce_scatter_single",
)  # fmt: skip


@contextmanager
def imagined(
    world: Mapping[str, int],
    assume: Callable[[str], None],
    exchanged: Callable[[torch.Tensor], None],
) -> Iterator[None]:
    """`torch.distributed` works as rank ``rank`` of ``size`` processes, without any other.

    Args:
        world: ``size``, ``rank`` and ``local_size``.
        assume: Called with what is assumed.
        exchanged: Called with the buffers of what is exchanged.
    """
    if not dist.is_available():
        yield
        return
    size, rank = world["size"], world["rank"]
    start = dist.init_process_group

    def init_process_group(*arguments: Any, **options: Any) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        assume(f"the other {size - 1} of {size} processes are assumed to respond immediately")
        start("fake", rank=rank, world_size=size, store=FakeStore())

    variables = {
        "RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank % world["local_size"],
        "LOCAL_WORLD_SIZE": world["local_size"], "MASTER_ADDR": "localhost", "MASTER_PORT": 29500,
    }  # fmt: skip

    def buffered(*arguments: Any, **options: Any) -> Any:
        # The larger side holds what all processes have.
        tensors = (v for v in (*arguments, *options.values()) if isinstance(v, torch.Tensor))
        exchanged(max(tensors, key=lambda tensor: tensor.nbytes))
        return _done(**options)

    def parallel_init(model: Any, *arguments: Any, **options: Any) -> None:
        _parallel_init(model, *arguments, **options)
        for bucket in model._buckets:
            exchanged(bucket)

    functions = {
        "init_process_group": init_process_group,
        **_COLLECTIVES,
        **dict.fromkeys(_BUFFERED, buffered),
    }
    functions = {name: value for name, value in functions.items() if hasattr(dist, name)}
    parallel = torch.nn.parallel.DistributedDataParallel
    methods = {"__init__": parallel_init, "forward": _parallel_forward, "no_sync": _no_sync}
    with ExitStack() as stack:
        if size > 1:
            stack.enter_context(_environment(variables))
        stack.enter_context(replaced(dist, functions))
        stack.enter_context(replaced(dist.distributed_c10d, functions))
        # It has functions of torch.distributed under names of its own.
        mesh = import_module("torch.distributed.device_mesh")
        own = {name: value for name, value in functions.items() if hasattr(mesh, name)}
        stack.enter_context(replaced(mesh, own))
        stack.enter_context(replaced(parallel, methods))
        # A mesh that is not given is one of the accelerator.
        stack.enter_context(
            replaced(torch._C, {"_get_accelerator": lambda check=None: torch.device("cuda")})
        )
        try:
            yield
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


@contextmanager
def first_replica() -> Iterator[None]:
    """`torch.nn.DataParallel` computes the share of the first GPU, whose memory counts, and takes it for all."""

    def scatter(model: Any, inputs: Any, options: Any, devices: Any) -> Any:
        first = torch.device("cuda", model.device_ids[0])
        sizes: list[tuple[int, int]] = []

        def share(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            part: torch.Tensor = value.to(first).chunk(len(devices), model.dim)[0]
            sizes.append((part.size(model.dim), value.size(model.dim)))
            return part

        inputs, options = tree_map(share, (inputs, options))
        part, whole = sizes[0] if sizes else (1, 1)
        model._sizes = part, whole
        count = -(-whole // (part or 1)) or 1
        return (inputs,) * count, (options,) * count

    def gather(model: Any, outputs: Sequence[Any], device: Any) -> Any:
        part, whole = model._sizes

        def joined(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            if value.dim() == 0:
                return value.expand(len(outputs))
            result = torch.cat([value] * len(outputs), model.dim)
            return result.narrow(model.dim, 0, whole) if value.size(model.dim) == part else result

        return tree_map(joined, outputs[0])

    def parallel_apply(model: Any, replicas: Any, inputs: Any, options: Any) -> list[Any]:
        return [model.module(*inputs[0], **options[0])] * len(replicas)

    methods = {
        "scatter": scatter,
        "replicate": lambda self, module, devices: [module] * len(devices),
        "parallel_apply": parallel_apply,
        "gather": gather,
    }
    with replaced(torch.nn.DataParallel, methods):
        yield


@contextmanager
def _environment(variables: Mapping[str, Any]) -> Iterator[None]:
    added = {name: str(value) for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _parallel_init(
    self: Any,
    module: torch.nn.Module,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    broadcast_buffers: bool = True,
    init_sync: bool = True,
    process_group: Any = None,
    bucket_cap_mb: Any = None,
    *arguments: Any,
    gradient_as_bucket_view: bool = False,
    **options: Any,
) -> None:
    torch.nn.Module.__init__(self)
    if not dist.is_initialized():
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not trained:
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameters that "
            "require a gradient."
        )
    if device_ids and trained[0].device.type == "cpu":
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {{'cpu'}}."
        )
    self.module = module
    self.device_ids, self.device = device_ids, trained[0].device
    self.static_graph = False
    self.require_backward_grad_sync = True
    self._buckets = []
    for parameters in _groups(trained, bucket_cap_mb or 25):
        values = sum(parameter.numel() for parameter in parameters)
        bucket = torch.empty(values, dtype=parameters[0].dtype, device=self.device)
        self._buckets.append(bucket)
        if gradient_as_bucket_view:
            _view_bucket(parameters, bucket)


def _groups(parameters: list[Any], megabytes: float) -> list[list[Any]]:
    """The parameters of each bucket, as the reducer has them: from the last, each type for itself."""
    full: list[list[Any]] = []
    filling: dict[torch.dtype, list[Any]] = {}
    limits = dict.fromkeys((value.dtype for value in parameters), FIRST_BUCKET_BYTES)
    for parameter in reversed(parameters):
        kind = parameter.dtype
        group = filling.setdefault(kind, [])
        group.append(parameter)
        if sum(value.nbytes for value in group) >= limits[kind]:
            full.append(filling.pop(kind))
            limits[kind] = int(megabytes * (1 << 20))
    return [*full, *filling.values()]


def _view_bucket(parameters: list[Any], bucket: torch.Tensor) -> None:
    """Each gradient, when it is made, is copied to its place in the bucket, and given back."""
    places = iter(torch.split(bucket, [value.numel() for value in parameters]))
    for parameter in parameters:
        there = next(places).view(parameter.shape)
        parameter.register_post_accumulate_grad_hook(partial(_moved, place=there))


def _moved(parameter: Any, place: torch.Tensor) -> None:
    parameter.grad = place


def _parallel_forward(self: Any, *inputs: Any, **options: Any) -> Any:
    return self.module(*inputs, **options)


@contextmanager
def _no_sync(self: Any) -> Iterator[None]:
    yield
