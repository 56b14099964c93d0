"""The program's GPU, pretended: shapes, types, devices and allocations without memory.

`enter` makes `torch` of this process see the target's GPUs. What the program puts on them has no values
and no memory; what stays on the CPU is real. torch is imported by this package, and by nothing else
of the child but `layers` and `trace`.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
import torch._subclasses.fake_tensor as fake_tensor
import torch.nn.functional
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from epochzero.check.dryrun.child.fake.attention import attention
from epochzero.check.dryrun.child.fake.distributed import first_replica, imagined
from epochzero.check.dryrun.child.fake.mode import FakeGpu, activated
from epochzero.check.dryrun.child.fake.saved import by_shape
from epochzero.check.dryrun.child.fake.shim import Unfit, install
from epochzero.check.dryrun.child.fake.values import known, unknown_tensor
from epochzero.check.dryrun.child.trace import TraceRecorder, user_place
from epochzero.injected.compilation import UNCOMPILED
from epochzero.injected.gpus.device import pretended
from epochzero.injected.patches import replaced


class FakeGpuFacts:
    """What is learned while the GPU is pretended.

    Attributes:
        trace: The allocations, in order.
        assumptions: What was assumed, with the user's place (path, line) -> how often.
        saved: Files that were saved -> bytes of the tensors in them.
    """

    def __init__(self) -> None:
        self.trace = TraceRecorder()
        self.assumptions: Counter[tuple[str, str, int]] = Counter()
        self.saved: dict[str, int] = {}

    def assume(self, what: str) -> None:
        """Note what is assumed, at the line of the program that needs it."""
        self.assumptions[(what, *user_place())] += 1


@contextmanager
def enter(gpus: Sequence[Mapping[str, Any]], world: Mapping[str, int]) -> Iterator[FakeGpuFacts]:
    """Pretend these GPUs until the end of the block.

    Args:
        gpus: Of each its ``model``, ``memory_bytes`` and ``capability`` (major, minor).
        world: ``size``, ``rank`` and ``local_size`` of the job's processes.

    Raises:
        Unfit: This torch cannot.
    """
    install()
    faked = FakeGpuFacts()
    mode = FakeGpu(faked.assume, faked.trace.made, faked.trace.multiplied)
    capability = (int(gpus[0]["capability"][0]), int(gpus[0]["capability"][1]))
    lifted = torch._C._only_lift_cpu_tensors()
    with ExitStack() as stack:
        emptied = partial(faked.trace.mark, "empty cache")
        stack.enter_context(pretended(gpus, faked.trace.memory, emptied))
        stack.enter_context(_tensors_read(faked))
        stack.enter_context(_tensors_as_on_a_gpu(mode, faked))
        stack.enter_context(_kernels_as_on_a_gpu(capability, faked))
        stack.enter_context(_fakes_as_tensors())
        stack.enter_context(imagined(world, faked.assume, faked.trace.exchanged))
        stack.enter_context(first_replica())
        stack.enter_context(by_shape(faked.saved.__setitem__))
        stack.enter_context(faked.trace.watched())
        # `torch.tensor(..., device="cuda")` is made on the CPU and moved by an operation that is seen.
        torch._C._set_only_lift_cpu_tensors(True)
        stack.callback(torch._C._set_only_lift_cpu_tensors, lifted)
        # Backward in the calling thread: its frames say where.
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(activated(mode))
        stack.enter_context(_in_threads(mode))
        stack.enter_context(mode)
        yield faked


@contextmanager
def _in_threads(mode: FakeGpu) -> Iterator[None]:
    """Threads that the program starts see the same GPU: torch keeps modes for each thread."""
    run = threading.Thread.run

    def run_in_mode(self: threading.Thread) -> None:
        with mode:
            run(self)

    with replaced(threading.Thread, {"run": run_in_mode}):
        yield


@contextmanager
def _tensors_read(faked: FakeGpuFacts) -> Iterator[None]:
    """What reads the memory of a tensor: real values where they are known, else assumed ones."""

    def real(tensor: Any) -> torch.Tensor:
        value = known(tensor)
        if value is not None:
            return value
        faked.assume("a tensor with unknown values is read as ones, or zeros if it holds integers")
        return unknown_tensor(tensor)

    def numpy(self: Any, *, force: bool = False) -> Any:
        if not force and self.fake_device.type != "cpu":
            raise TypeError(
                f"can't convert {self.fake_device} device type tensor to numpy. Use Tensor.cpu() to "
                "copy the tensor to host memory first."
            )
        if not force and self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        return real(self).numpy()

    def array(self: Any, dtype: Any = None) -> Any:
        return numpy(self) if dtype is None else numpy(self).astype(dtype, copy=False)

    def text(self: Any, *, tensor_contents: Any = None) -> str:
        return f"tensor(..., device='{self.fake_device}', size={tuple(self.shape)})"

    def formatted(self: Any, specification: str) -> str:
        return format(self.item() if self.dim() == 0 else text(self), specification)

    methods = {
        "numpy": numpy,
        "__array__": array,
        "tolist": lambda self: real(self).tolist(),
        "__repr__": text,
        "__format__": formatted,
        "data_ptr": lambda self: id(self),
    }
    with replaced(FakeTensor, methods):
        yield


@contextmanager
def _tensors_as_on_a_gpu(mode: FakeGpu, faked: FakeGpuFacts) -> Iterator[None]:
    """Replace functions of tensors, parameters and storages, so that torch itself treats fakes as real tensors."""
    swap: Any = torch.utils.swap_tensors
    make, typed = torch.nn.Parameter.__new__, torch.Tensor.type
    address: Any = torch.UntypedStorage.data_ptr
    resize: Any = torch.UntypedStorage.resize_
    data: Any = vars(torch._C.TensorBase)["data"]

    def swap_tensors(first: Any, second: Any) -> None:
        # What the converter remembers keeps tensors from being swapped.
        mode.fakes.fake_tensor_converter.meta_converter.tensor_memo.clear()
        swap(first, second)

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if type(data) in (torch.Tensor, torch.nn.Parameter) and data.device.type == "cpu":
            data = mode.to_fake(data)
        return make(cls, data, requires_grad)

    def as_type(self: Any, dtype: Any = None, *arguments: Any, **options: Any) -> Any:
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            dtype = getattr(torch.cuda, dtype.rpartition(".")[2])
        if callable(dtype) and isinstance(getattr(dtype, "dtype", None), torch.dtype):
            return self.to("cuda", dtype.dtype)
        return typed(self, dtype, *arguments, **options)

    def pointer(self: Any) -> int:
        # Only to tell storages apart: those of fakes have no address.
        return int(self._cdata if self.device.type == "meta" else address(self))

    def get_data(self: Any) -> Any:
        return data.__get__(self)

    def set_data(self: Any, value: Any) -> None:
        data.__set__(self, value)
        self.fake_device = getattr(value, "fake_device", value.device)

    def resized(self: Any, size: int) -> Any:
        result = resize(self, size)
        faked.trace.resized(self)
        return result

    methods = {
        "pin_memory": lambda self, *a: self,
        "is_pinned": lambda self, *a: False,
        "type": as_type,
        "share_memory_": lambda self: self,
        "record_stream": lambda self, stream: None,
    }
    storages = {"data_ptr": pointer, "resize_": resized}
    with (
        replaced(torch.utils, {"swap_tensors": swap_tensors}),
        replaced(torch.nn.Parameter, {"__new__": staticmethod(parameter)}),
        replaced(torch.Tensor, methods),
        replaced(FakeTensor, {"data": property(get_data, set_data)}),
        replaced(torch.UntypedStorage, storages),
    ):
        yield


@contextmanager
def _kernels_as_on_a_gpu(capability: tuple[int, int], faked: FakeGpuFacts) -> Iterator[None]:
    """Replace kernels for which torch computes no shapes, and omit compilation."""
    classify: Any = torch.ctc_loss
    attend = torch.nn.functional.scaled_dot_product_attention

    def temporal(
        log_probs: Any, targets: Any, given: Any, wanted: Any, *rest: Any, **options: Any
    ) -> Any:
        # Lengths in a tensor become numbers, as the kernel has it; with fakes they would stay tensors.
        lengths = (
            size.tolist() if isinstance(size, torch.Tensor) else size for size in (given, wanted)
        )
        return classify(log_probs, targets, *lengths, *rest, **options)

    def uncompiled(model: Any = None, *arguments: Any, **options: Any) -> Any:
        faked.assume(UNCOMPILED)
        faked.trace.compiled()
        return model if model is not None else lambda function: function

    functional = {"scaled_dot_product_attention": attention(capability, attend)}
    # Torch computes no shapes for the kernel that evaluates a whole encoder layer.
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            replaced(torch, {"compile": uncompiled, "ctc_loss": temporal}),
            replaced(torch.nn.Module, {"compile": lambda self, *a, **k: uncompiled(self)}),
            replaced(torch.nn.functional, functional),
            # bitsandbytes uses this function when it is imported; a CPU build of torch lacks it.
            replaced(torch._C, {"_cuda_getCurrentRawStream": lambda device: 0}),
        ):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def _fakes_as_tensors() -> Iterator[None]:
    """Change the fake tensors of torch: they initialize no GPU, and optimizers know their type."""
    from torch.optim import optimizer

    dispatch: Any = FakeTensorMode.__torch_dispatch__
    methods = {
        "__torch_dispatch__": inspect.unwrap(dispatch),
        "avoid_device_init": property(lambda self: True),
        "__deepcopy__": lambda self, memo: self,
    }
    # Optimizers use their foreach implementation only for types that they know.
    optimizer._foreach_supported_types.append(FakeTensor)
    try:
        with (
            # The program receives the exceptions of fakes; torch would also print them.
            replaced(fake_tensor.log, {"disabled": True}),
            replaced(fake_tensor, {"init_gpu_context": lambda device: None}),
            replaced(FakeTensorMode, methods),
        ):
            yield
    finally:
        optimizer._foreach_supported_types.remove(FakeTensor)
