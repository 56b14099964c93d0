"""What a GPU would be asked to allocate and free, in order: one event a storage.

Kinds are decided afterwards, by what holds a storage: parameters and gradients are those of the
optimizers and modules, activations are what lives when backward starts, the rest is temporary.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from epochzero.check.dryrun.child import layers
from epochzero.injected.identity import ByIdentity

_LIBRARIES = tuple(
    {
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
        sysconfig.get_path("stdlib") + os.sep,
        sysconfig.get_path("purelib") + os.sep,
        sysconfig.get_path("platlib") + os.sep,
        os.path.dirname(torch.__file__) + os.sep,
        "<frozen",
    }
)
_A_LINE = 1000
# Whether the code at a path is the user's.
_users: dict[str, bool] = {}


def user_place() -> tuple[str, int]:
    """Path and line of the innermost frame of the user's own code; empty where there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        users = _users.get(path)
        if users is None:
            users = _users[path] = not path.startswith(_LIBRARIES)
        if users:
            return path, frame.f_lineno
        frame = frame.f_back
    return "", 0


class TraceRecorder:
    """The events, while the program runs.

    Attributes:
        events: Dictionaries as written: ``a`` allocates storage ``a`` of ``n`` bytes at place ``w``, ``f`` frees
            one, ``m`` names a moment.
        where: The places: path, line, module path.
        kinds: Storage -> ``parameter``, ``gradient``, ``optimizer``, ``activation``, ``input``, ``buffer``,
            ``communication`` (buckets, gathered parameters); what is not named is ``temporary``.
        names: Storage of a parameter, its gradient or its optimizer state -> name of the parameter.
        computed: Of a job that is compiled, storages that a compiler does not do without; None where nothing is.
        taken: How many storages there were; the number of the next.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.where: list[tuple[str, int, str]] = []
        self.kinds: dict[int, str] = {}
        self.names: dict[int, str] = {}
        # By identity, without weak references: torch swaps no tensors that have any.
        self._parameters: dict[int, str] = {}
        self.computed: Optional[list[int]] = None
        self._intensive: frozenset[Any] = frozenset()
        self._places: dict[tuple[str, int, str], int] = {}
        self._numbers: dict[int, int] = {}
        self._living: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self.taken = self._steps = self._now = self._peak = 0
        self._skips: list[dict[str, Any]] = []
        self._handles: set[str] = set()
        self._roots: ByIdentity[bool] = ByIdentity()

    def memory(self) -> tuple[int, int]:
        """Bytes that are allocated now, and the most that were."""
        return self._now, self._peak

    def made(self, func: Any, result: Any, moved: bool) -> None:
        """Note the storages of an operation's result that are new; an input is moved from the CPU."""
        first = self.taken
        if isinstance(result, FakeTensor):
            self._see(result, moved)
        elif isinstance(result, (list, tuple)):
            for item in result:
                if isinstance(item, FakeTensor):
                    self._see(item, moved)
        if self.computed is not None and func.overloadpacket in self._intensive:
            self.computed.extend(range(first, self.taken))

    def compiled(self) -> None:
        """Note that the program compiles a part of itself."""
        if self.computed is None:
            from torch._functorch.partitioners import get_default_op_list

            self.computed = []
            self._intensive = frozenset(get_default_op_list().compute_intensive_ops)

    def mark(self, name: str) -> None:
        """Name the moment."""
        self.events.append({"m": name})

    def exchanged(self, tensor: Any) -> None:
        """Note a buffer of what processes send each other."""
        if isinstance(tensor, FakeTensor):
            number = self._numbers.get(tensor.untyped_storage()._cdata)
            if number is not None:
                self.kinds.setdefault(number, "communication")

    def resized(self, storage: Any) -> None:
        """Note that a storage has another size now: FSDP gives gathered parameters back in this way."""
        number = self._numbers.get(storage._cdata)
        if number is not None and self._sizes[number] != storage.nbytes():
            self._gone(storage._cdata, number)
            self.kinds[self._new(storage)] = "communication"

    def multiplied(self) -> None:
        """Note the first product of a thread: its cuBLAS handle takes a workspace then.

        Backward runs in a thread of its own on a GPU, here in the program's.
        """
        name = "cublas" if torch._C._current_graph_task_id() == -1 else "cublas backward"
        if name not in self._handles:
            self._handles.add(name)
            self.mark(name)

    def lives(self, first: int, end: int) -> bool:
        """Whether one of the storages with these numbers is still there."""
        return any(number in self._living for number in range(first, end))

    def left_out(self, count: int, begun: Iterable[int], *, sure: bool) -> dict[str, Any]:
        """Note that as many iterations of a loop are left out here.

        Args:
            count: How many.
            begun: The storages at which each iteration before began.
            sure: Whether what those keep, each surely keeps.

        Returns:
            The note: ``until``, when it is known, is the number of events at the next iteration's end.
        """
        skip: dict[str, Any] = {"at": len(self.events), "count": count}
        skip |= {"begun": [*begun, self.taken], "sure": sure, "until": None}
        self._skips.append(skip)
        return skip

    def lines(self) -> Iterator[dict[str, Any]]:
        """All of it: the events, then what the storages are for, then the places, a few a line."""
        yield from self.events
        for key, table in (("kinds", self.kinds), ("names", self.names)):
            items = list(table.items())
            for start in range(0, len(items), _A_LINE):
                yield {key: dict(items[start : start + _A_LINE])}
        if self.computed is not None:
            for start in range(0, max(len(self.computed), 1), _A_LINE):
                yield {"computed": self.computed[start : start + _A_LINE]}
        for skip in self._skips:
            yield {"skip": skip}
        for start in range(0, len(self.where), _A_LINE):
            yield {"where": self.where[start : start + _A_LINE]}

    def write(self, path: str) -> None:
        """Write all as JSON lines."""
        with open(path, "w", encoding="utf-8") as file:
            for line in self.lines():
                file.write(json.dumps(line) + "\n")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Learn kinds and moments from optimizers, backward and modules."""
        backward = torch.autograd.backward

        def run_backward(*arguments: Any, **options: Any) -> None:
            self.mark("backward")
            for number in list(self._living):  # other threads allocate and free meanwhile
                self.kinds.setdefault(number, "activation")
            backward(*arguments, **options)
            self.mark("backward done")

        with ExitStack() as stack:
            for hook in (
                register_optimizer_step_pre_hook(self._before_step),
                register_optimizer_step_post_hook(self._after_step),
                torch.nn.modules.module.register_module_forward_pre_hook(self._before_forward),
            ):
                stack.callback(hook.remove)
            torch.autograd.backward = run_backward
            stack.callback(setattr, torch.autograd, "backward", backward)
            yield

    def _see(self, tensor: FakeTensor, moved: bool) -> None:
        if tensor.fake_device.type != "cuda":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._numbers:
            return
        number = self._new(storage)
        if moved:
            self.kinds[number] = "input"

    def _new(self, storage: Any) -> int:
        key, number, size = storage._cdata, self.taken, storage.nbytes()
        self.taken += 1
        self._numbers[key] = number
        self._sizes[number] = size
        self._now += size
        self._peak = max(self._peak, self._now)
        self.events.append({"a": number, "n": size, "w": self._place()})
        self._living[number] = weakref.ref(storage, lambda _: self._gone(key, number))
        return number

    def _gone(self, key: int, number: int) -> None:
        self.events.append({"f": number})
        self._now -= self._sizes.pop(number)
        self._living.pop(number, None)
        if self._numbers.get(key) == number:
            del self._numbers[key]

    def _place(self) -> int:
        place = (*user_place(), layers.path())
        number = self._places.get(place)
        if number is None:
            number = self._places[place] = len(self.where)
            self.where.append(place)
        return number

    def _name(self, tensor: Optional[Any], kind: str, parameter: Optional[Any] = None) -> None:
        tensor = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
        if isinstance(tensor, FakeTensor):
            number = self._numbers.get(tensor.untyped_storage()._cdata)
            if number is not None:
                self.kinds[number] = kind
                name = None if parameter is None else self._parameters.get(id(parameter))
                if name:
                    self.names[number] = name

    def _before_forward(self, module: torch.nn.Module, inputs: Any) -> None:
        if self._roots.get(module) or layers.depth() > 1:
            return
        self._roots.set(module, True)
        for name, parameter in module.named_parameters():
            self._parameters[id(parameter)] = name
            self._name(parameter, "parameter", parameter)
        for buffer in module.buffers():
            self._name(buffer, "buffer")

    def _before_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._name(parameter, "parameter", parameter)
                self._name(parameter.grad, "gradient", parameter)
        self.mark("optimizer")

    def _after_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        for parameter, state in optimizer.state.items():
            for value in state.values():
                self._name(value, "optimizer", parameter)
        self._steps += 1
        self.mark(f"step {self._steps}")
