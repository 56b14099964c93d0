"""Each operation is run really or on fakes: what lies on the GPU, or is a parameter, has no memory.

Real: tensors on the CPU that come from data, with their values. Fake: everything on ``cuda``, every
parameter wherever it lies, and CPU tensors above 64 MiB. One dispatch mode decides by operation; fakes
of torch's own `FakeTensorMode` give shapes, types, devices and their errors.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import torch
import torch._subclasses.fake_tensor as fake_tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode

from epochzero.check.dryrun.child.fake.bounds import BOUNDS, check_index
from epochzero.check.dryrun.child.fake.values import (
    forget,
    known,
    remember,
    unknown_scalar,
    unknown_tensor,
)

# Has a name of its own since torch 2.12; before, a RuntimeError that _MESSAGES matches.
_DEVICE_MISMATCH: Any = getattr(fake_tensor, "FakeTensorDeviceMismatchError", ())
# What a fake raises where values decide.
_BY_VALUES = (DataDependentOutputException, DynamicOutputShapeException)
# A real CPU tensor that is larger is not made.
REAL_BYTES = 64 << 20

aten = torch.ops.aten
_DEVICE = torch.ops.prim.device.default
_FAKES = torch._C._TorchDispatchModeKey.FAKE
_RANDOM = torch.Tag.nondeterministic_seeded
# Made without tensors, and known nevertheless.
_CONSTANT = frozenset(
    {"zeros", "ones", "full", "arange", "eye", "scalar_tensor", "linspace", "tril_indices"}
)
# What a fake raises, and how the operation on a real GPU says it.
_MESSAGES = (
    (
        re.compile(
            r"a and b must have same reduction dim, but got "
            r"\[(?P<a>\d+), (?P<b>\d+)\] X \[(?P<c>\d+), (?P<d>\d+)\]"
        ),
        "mat1 and mat2 shapes cannot be multiplied ({a}x{b} and {c}x{d})",
    ),
    (
        re.compile(
            r"Unhandled FakeTensor Device Propagation for \S+, found two different devices "
            r"(?P<a>\S+), (?P<b>\S+)"
        ),
        "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!",
    ),
)
# Products, with the positions of the operands that must be of one type.
_SAME_DTYPE: dict[Any, tuple[int, ...]] = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.baddbmm.default: (1, 2),
    aten.convolution.default: (0, 1, 2),
}
# Those that cuBLAS computes.
_CUBLAS = frozenset(_SAME_DTYPE) - {aten.convolution.default}
_LABELS = frozenset({aten.nll_loss_forward.default, aten.nll_loss2d_forward.default})
_KINDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


_active: list[FakeGpu] = []


def current() -> FakeGpu:
    """The mode that is active."""
    return _active[-1]


@contextmanager
def activated(mode: FakeGpu) -> Iterator[None]:
    """Within it, this is the `current` mode."""
    _active.append(mode)
    try:
        yield
    finally:
        _active.pop()


class FakeGpu(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The dispatch mode.

    Args:
        assume: Called with what is assumed, in words, where a value had to be.
        made: Called with each operation, its result, and whether it was moved from the CPU, for the trace of allocations.
        multiplied: Called when cuBLAS has been asked for a product.
    """

    def __init__(
        self,
        assume: Callable[[str], None],
        made: Callable[[Any, Any, bool], None],
        multiplied: Callable[[], None],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)
        self.assume = assume
        self._made = made
        self._multiplied = multiplied
        self._alone = threading.RLock()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled: each operation is spared a wrapper."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation; threads take turns, since torch's fake mode has one state for all."""
        with self._alone:
            return self._run_one(func, args, kwargs or {})

    def _run_one(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is _DEVICE:
            return args[0].fake_device if isinstance(args[0], FakeTensor) else args[0].device
        if torch._C._get_dispatch_mode(_FAKES) is not None:
            # torch reckons shapes for itself, those of whole DTensors: nothing is allocated.
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled():
            # Composite operations arrive whole there; elsewhere autograd takes them apart.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        tensors = list(_tensors(args, kwargs))
        if any(hasattr(tensor, "_local_tensor") for tensor in tensors):
            # A DTensor does the operation on its part, which is seen here again.
            return NotImplemented
        device = kwargs.get("device")
        on_gpu = device is not None and device.type == "cuda"
        if not on_gpu and not any(isinstance(tensor, FakeTensor) for tensor in tensors):
            if not tensors and _bytes(func, args, kwargs) > REAL_BYTES:
                return self._fake(func, args, kwargs)
            return func(*args, **kwargs)
        check_index(func, args)
        handler = _HANDLERS.get(func)
        if handler is not None:
            result = handler(self, func, args, kwargs)
        else:
            result = self._run(func, args, kwargs, tensors)
        moved = func is aten._to_copy.default and args[0].device.type == "cpu"
        self._made(func, result, moved)
        if func in _CUBLAS:
            self._multiplied()
        return result

    def to_fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """A fake of a real CPU tensor, without its values."""
        if isinstance(tensor, FakeTensor):
            return tensor
        fake: torch.Tensor = self._placed(tensor, tensor.device)
        return fake

    def lift(self, value: torch.Tensor, device: torch.device) -> torch.Tensor:
        """A fake tensor on a device that knows its values."""
        fake: torch.Tensor = self._placed(value, device)
        remember(fake, value)
        return fake

    def _run(self, func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
        result = self._fake(func, args, kwargs)
        mutable = func._schema.is_mutable
        if _knows(func, tensors):
            try:
                value = func(*_values(args), **_values(_on_cpu(kwargs)))
            except (RuntimeError, IndexError, NotImplementedError):
                return result
            if not mutable:
                remember(result, value)
        elif mutable:
            for tensor in tensors[: len(_mutated(func))]:
                forget(tensor)
        if mutable and tensors and not isinstance(tensors[0], FakeTensor) and func is not aten.set_:
            # A real tensor is overwritten with what is unknown.
            return tensors[0] if result is not None else None
        return result

    def _fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in _SAME_DTYPE:
            _check_dtypes(_SAME_DTYPE[func], args)
        elif func in _LABELS and args[1].dtype not in (torch.int64, torch.uint8):
            raise RuntimeError(f"expected scalar type Long but found {_kind(args[1].dtype)}")
        try:
            with self.fakes:
                return func(*args, **kwargs)
        except (NotImplementedError, *_BY_VALUES):
            if func._schema.is_mutable:
                raise
            return self._by_example(func, args, kwargs)
        except _DEVICE_MISMATCH as error:
            raise RuntimeError(str(error)) from None
        except RuntimeError as error:
            for pattern, template in _MESSAGES:
                match = pattern.search(str(error))
                if match:
                    raise RuntimeError(template.format(**match.groupdict())) from None
            raise

    def _by_example(self, func: Any, args: Any, kwargs: Any) -> Any:
        """torch knows no shapes for the operation: it is run on assumed values on the CPU."""
        self.assume(f"the result of {func} has the shape that it has for ones")
        device = next(tensor.device for tensor in _tensors(args, kwargs))
        if sum(tensor.nbytes for tensor in _tensors(args, kwargs)) > REAL_BYTES:
            raise NotImplementedError(
                f"the output shapes of {func} cannot be determined without a GPU"
            )
        result = func(*_examples(args), **_examples(_on_cpu(kwargs)))
        if isinstance(result, torch.Tensor):
            return self._placed(result, device)
        if isinstance(result, (list, tuple)):
            return type(result)([self._placed(item, device) for item in result])
        return result

    def _placed(self, value: Any, device: torch.device) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        with self.fakes:
            return torch.empty_strided(
                tuple(value.shape), value.stride(), dtype=value.dtype, device=device
            )


def _tensors(args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, torch.Tensor):
                    yield item


def _bytes(func: Any, args: Any, kwargs: Any) -> int:
    """How much a factory would allocate: sizes come as a list of integers."""
    sizes = next((value for value in args if isinstance(value, (list, tuple))), ())
    number = 1
    for size in sizes:
        number *= size if isinstance(size, int) else 1
    return number * (kwargs.get("dtype") or torch.get_default_dtype()).itemsize


def _knows(func: Any, tensors: list[torch.Tensor]) -> bool:
    if _RANDOM in func.tags:
        return False
    if not tensors:
        return func._schema.name.split("::")[1] in _CONSTANT
    for tensor in tensors:
        value = known(tensor)
        if value is None or value.numel() > 1 << 16:
            return False
    return True


def _each(change: Callable[[torch.Tensor], Any], arguments: Any) -> Any:
    """The arguments with each tensor changed."""
    if isinstance(arguments, torch.Tensor):
        return change(arguments)
    if isinstance(arguments, (list, tuple)):
        return type(arguments)([_each(change, item) for item in arguments])
    if isinstance(arguments, dict):
        return {name: _each(change, value) for name, value in arguments.items()}
    return arguments


def _values(arguments: Any) -> Any:
    return _each(known, arguments)


def _examples(arguments: Any) -> Any:
    def example(tensor: torch.Tensor) -> torch.Tensor:
        value = known(tensor)
        return unknown_tensor(tensor) if value is None else value

    return _each(example, arguments)


def _check_dtypes(positions: tuple[int, ...], args: Any) -> None:
    """Kernels of products want one type; fakes do not look at it.

    Raises:
        RuntimeError: In the words of the kernel on the GPU.
    """
    operands = [args[position] for position in positions if args[position] is not None]
    first = operands[0].dtype
    for operand in operands[1:]:
        if operand.dtype != first:
            raise RuntimeError(
                "mat1 and mat2 must have the same dtype, but got "
                f"{_kind(first)} and {_kind(operand.dtype)}"
            )


def _kind(dtype: torch.dtype) -> str:
    name = str(dtype).rpartition(".")[2]
    return _KINDS.get(name, name)


def _on_cpu(kwargs: Any) -> Any:
    return {**kwargs, "device": torch.device("cpu")} if kwargs.get("device") is not None else kwargs


def _mutated(func: Any) -> list[Any]:
    return [
        argument
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


# --- operations whose result depends on values


def _scalar(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    value = known(args[0])
    if value is not None:
        return value.item()
    number = unknown_scalar(args[0].dtype)
    mode.assume(f"an unknown value on the GPU is read as {number}")
    return number


def _transfer(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    """To the GPU: the fake keeps the values if they are few. To the CPU: a real tensor again."""
    source = args[0]
    result = mode._fake(func, args, kwargs)
    value = known(source)
    small = result.numel() * result.element_size() <= REAL_BYTES
    if result.device.type == "cpu" and source.device.type == "cuda" and small:
        if value is not None:
            return value.to(dtype=result.dtype, copy=True)
        mode.assume("a tensor of the GPU is read on the CPU as ones, whole numbers as zeros")
        return unknown_tensor(result)
    if value is not None and small:
        remember(result, value.to(dtype=result.dtype, copy=True))
    return result


def _copy(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    target, source = args[:2]
    mode._fake(func, args, kwargs)
    value, there = known(source), known(target)
    if isinstance(target, FakeTensor):
        if value is not None and there is not None:
            there.copy_(value)
        elif value is not None and target._base is None:
            remember(target, value.expand(target.shape).to(dtype=target.dtype, copy=True))
        else:
            forget(target)
    elif value is not None:
        target.copy_(value)
    else:
        mode.assume("a tensor of the GPU is read on the CPU as ones, whole numbers as zeros")
        target.copy_(unknown_tensor(source))
    return target


def _equal(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> bool:
    storages = {tensor.untyped_storage()._cdata for tensor in args[:2]}
    if len(storages) == 1 and args[0].shape == args[1].shape:
        return True
    first, second = known(args[0]), known(args[1])
    if first is None or second is None:
        mode.assume("two tensors with unknown values on the GPU are assumed to differ")
        return False
    return torch.equal(first, second)


def _absorbed(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    """Where one side decides, the other need not be known: a loop that waits for either ends."""
    result = mode._run(func, args, kwargs, list(_tensors(args, kwargs)))
    either = "or" in func._schema.name
    if known(result) is not None:
        return result
    for value in map(known, args):
        if value is None or value.shape != result.shape:
            continue
        if value.dtype == torch.bool and value.all() if either else not value.any():
            remember(result, value.to(result.dtype))
    return result


def _bounded(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    return BOUNDS[func](mode, func, args, kwargs)


def _nothing(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> None:
    return None


def _no(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> bool:
    return False


def _example(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    return mode._by_example(func, args, kwargs)


def _unscale(mode: FakeGpu, func: Any, args: Any, kwargs: Any) -> Any:
    """Gradients are finite: what the scaler knows of infinities stays as it is."""
    return mode._fake(func, args, kwargs)


_HANDLERS: dict[Any, Any] = {
    aten._local_scalar_dense.default: _scalar,
    aten._to_copy.default: _transfer,
    aten.copy_.default: _copy,
    aten.equal.default: _equal,
    aten.bitwise_or.Tensor: _absorbed,
    aten.bitwise_and.Tensor: _absorbed,
    aten.logical_or.default: _absorbed,
    aten.logical_and.default: _absorbed,
    aten.record_stream.default: _nothing,
    aten._linalg_check_errors.default: _nothing,
    # Lengths, and targets too, may lie on the CPU.
    **{
        getattr(getattr(aten, name), overload): handler
        for name, handler in (
            ("_use_cudnn_ctc_loss", _no),
            ("_use_miopen_ctc_loss", _no),
            ("_ctc_loss", _example),
            ("_ctc_loss_backward", _example),
        )
        if hasattr(aten, name)
        for overload in getattr(aten, name).overloads()
        if overload != "out" and not overload.endswith("_out")
    },
    aten._amp_foreach_non_finite_check_and_unscale_.default: _unscale,
    **dict.fromkeys(BOUNDS, _bounded),
}
