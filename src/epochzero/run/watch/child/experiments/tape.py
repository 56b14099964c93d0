"""The operators of one forward pass and its loss, in their order, each with the line and the layer that called it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

MOST_OPERATORS = 20_000
MOST_BYTES = 256 << 20
"""What may be held while an iteration is recorded: as long as a tensor lives, its identity is its own."""
_COLLECTIVES = ("c10d", "_c10d_functional", "symm_mem")


@dataclass(frozen=True, slots=True)
class TensorRef:
    """Stands for a tensor in the arguments of an operator."""

    number: int


@dataclass(slots=True)
class Operator:
    """One call of an operator.

    Attributes:
        function: of ``torch.ops``.
        flat, spec: its arguments as a flat list, tensors as `TensorRef`, and what puts them together.
        outputs: numbers of the tensors that it returns, in their order; None for what is no tensor.
        place, layer: the line of the user and the path of the layer that called it.
        inside: whether a model was being called.
        tracked: whether gradients were enabled.
        drawn: its outputs, where a generator of the program drew them.
    """

    function: Any
    flat: list[Any]
    spec: Any
    outputs: list[int | None]
    place: list[Any] | None
    layer: str
    inside: bool
    tracked: bool
    drawn: list[torch.Tensor] | None = None

    @property
    def name(self) -> str:
        """Its name without namespace and overload, such as ``addmm``."""
        return str(self.function._schema.name.partition("::")[2])

    @property
    def inputs(self) -> list[int]:
        """Numbers of the tensors that it is given."""
        return [value.number for value in self.flat if isinstance(value, TensorRef)]

    @property
    def numbers(self) -> set[int]:
        """Numbers of the tensors that it is given or returns."""
        return {*self.inputs, *(number for number in self.outputs if number is not None)}

    def arguments(self, values: Callable[[int], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Its arguments, with a value for the number of each tensor."""
        flat = [values(v.number) if isinstance(v, TensorRef) else v for v in self.flat]
        args, kwargs = tree_unflatten(flat, self.spec)
        return list(args), kwargs


@dataclass(slots=True)
class Tape:
    """What was recorded.

    Attributes:
        operators: in their order.
        leaves: tensors that no operator made, by number.
        before: values of leaves that an operator wrote to, from before.
        random: states of the generators of the devices at the beginning.
        outputs: numbers of the tensors that the outermost calls of models returned.
        problem: why it cannot be computed again; empty if nothing is known.
    """

    operators: list[Operator] = field(default_factory=list)
    leaves: dict[int, torch.Tensor] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    before: dict[int, torch.Tensor] = field(default_factory=dict)
    random: list[torch.Tensor] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    problem: str = ""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records operators as long as it is entered; the job's results are those of the operators themselves.

    Args:
        is_job: whether the operator that is called now is the job's.
        where: the place, the layer, and whether a model is being called.
    """

    def __init__(
        self, is_job: Callable[[], bool], where: Callable[[], tuple[list[Any] | None, str, bool]]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tape = Tape()
        self._is_job = is_job
        self._where = where
        self._held: dict[int, tuple[int, torch.Tensor]] = {}
        self._storages: dict[int, list[int]] = {}
        self._bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.tape.problem or not self._is_job():
            return func(*args, **kwargs)
        flat: list[Any] | None = None
        with suppress(Exception):
            flat, spec = self._before(func, args, kwargs)
        result = func(*args, **kwargs)
        if flat is None:
            self.tape.problem = self.tape.problem or f"{func} is unknown"
            return result
        try:
            self._after(func, flat, spec, result)
        except Exception as error:
            self.tape.problem = f"{func}: {type(error).__name__}"
        return result

    def close(self) -> Tape:
        """Takes it out of the modes of this thread, wherever it stands, and lets go of the tensors."""
        above = []
        while torch._C._len_torch_dispatch_stack():
            mode = torch._C._get_dispatch_stack_at(torch._C._len_torch_dispatch_stack() - 1)
            if mode is self:
                self.__exit__(None, None, None)
                break
            above.append(torch._C._pop_torch_dispatch_stack(None))
        for mode in reversed(above):
            torch._C._push_on_torch_dispatch_stack(mode)
        self._held.clear()
        self._storages.clear()
        return self.tape

    def number(self, tensor: torch.Tensor) -> int | None:
        """Of a tensor that was seen."""
        known = self._held.get(id(tensor))
        return known[0] if known is not None else None

    def _before(self, func: Any, args: Any, kwargs: Any) -> tuple[list[Any], Any]:
        if func.namespace in _COLLECTIVES or len(self.tape.operators) >= MOST_OPERATORS:
            self.tape.problem = "too many operators or ranks"
        flat, spec = tree_flatten((list(args), dict(kwargs)))
        if any(type(v) not in _PLAIN for v in flat if isinstance(v, torch.Tensor)):
            self.tape.problem = "tensors of unsupported classes"
        flat = [TensorRef(self._given(v)) if isinstance(v, torch.Tensor) else v for v in flat]
        for tensor in _written(func, args, kwargs):
            self._save(tensor)
        return flat, spec

    def _given(self, tensor: torch.Tensor) -> int:
        known = self._held.get(id(tensor))
        if known is not None:
            return known[0]
        numbers = self._storages.get(tensor.untyped_storage()._cdata, [])
        # Another object for what an operator has made: ``.data``, or an array that shares the memory.
        if numbers and numbers[0] not in self.tape.leaves:
            tensors = dict(self._held.values())
            same = next((n for n in numbers if _same(tensor, tensors[n])), None)
            if same is None:
                self.tape.problem = "memory under another name"
                return numbers[0]
            made = self._new(tensor)
            alias = torch.ops.aten.alias.default
            self._add(alias, *tree_flatten(([TensorRef(same)], {})), [made], tracked=False)
            return made
        number = self._new(tensor)
        self.tape.leaves[number] = tensor
        self.tape.versions[number] = tensor._version
        return number

    def _new(self, tensor: torch.Tensor) -> int:
        number = len(self._held)
        self._held[id(tensor)] = (number, tensor)
        storage = tensor.untyped_storage()
        known = self._storages.setdefault(storage._cdata, [])
        if not known and not isinstance(tensor, torch.nn.Parameter):
            self._bytes += storage.nbytes()
            if self._bytes > MOST_BYTES:
                self.tape.problem = "too much memory"
        known.append(number)
        return number

    def _save(self, tensor: torch.Tensor) -> None:
        """Saves what an operator is about to write to, if no operator of the tape has made it."""
        numbers = self._storages.get(tensor.untyped_storage()._cdata, [])
        leaves = [number for number in numbers if number in self.tape.leaves]
        if len(leaves) > 1:
            self.tape.problem = "memory that is shared is written to"
        for number in leaves:
            if number not in self.tape.before:
                self.tape.before[number] = self.tape.leaves[number].detach().clone()

    def _after(self, func: Any, flat: list[Any], spec: Any, result: Any) -> None:
        found, _ = tree_flatten(result)
        outputs = [self._returned(v) if isinstance(v, torch.Tensor) else None for v in found]
        self._add(func, flat, spec, outputs, tracked=torch.is_grad_enabled())
        seeded = torch.Tag.nondeterministic_seeded in func.tags
        if seeded and any(isinstance(value, torch.Generator) for value in flat):
            drawn = [value.detach().clone() for value in found if isinstance(value, torch.Tensor)]
            self.tape.operators[-1].drawn = drawn

    def _returned(self, tensor: torch.Tensor) -> int:
        known = self._held.get(id(tensor))
        return known[0] if known is not None else self._new(tensor)

    def _add(self, func: Any, flat: Any, spec: Any, outputs: Any, *, tracked: bool) -> None:
        place, layer, inside = self._where()
        self.tape.operators.append(
            Operator(func, flat, spec, outputs, place, layer, inside, tracked)
        )


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.shape == other.shape
        and one.stride() == other.stride()
        and one.storage_offset() == other.storage_offset()
        and one.dtype == other.dtype
    )


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """The arguments that an operator writes to."""
    if not func._schema.is_mutable and not _WRITES_STATISTICS.get(func._schema.name):
        return
    for position, argument in enumerate(func._schema.arguments):
        info = argument.alias_info
        writes = info is not None and info.is_write
        if not writes and argument.name not in _WRITES_STATISTICS.get(func._schema.name, ()):
            continue
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        values = value if isinstance(value, (list, tuple)) else [value]
        yield from (item for item in values if isinstance(item, torch.Tensor))


_STATISTICS = ("running_mean", "running_var")
_WRITES_STATISTICS = {
    f"aten::{name}": _STATISTICS
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")
}
"""Operators that write to arguments of which their schema does not say so."""
