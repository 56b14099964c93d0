"""The models of a job: which model an event concerns, and which optimizer steps it.

A model keeps its identity through ``model.to(device)``, `torch.compile` and the wrappers of distributed training.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from epochzero.check.findings import SourceLocation
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.model import Program
from epochzero.check.program.values import Instance, Items, Value
from epochzero.check.view.torch_usage import (
    PARALLEL_WRAPPERS,
    is_off,
    optimizer_steps,
    stepped_optimizer,
)

Model: TypeAlias = tuple[str, SourceLocation]
"""What created a model, and where."""

_SAME = tuple(
    """
    apply bfloat16 cpu cuda double eval float half requires_grad_ to train
    """.split()
)
"""Methods of a module that return the module itself."""
_WRAPPERS = (
    "torch.compile",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    *PARALLEL_WRAPPERS,
)


class ProgramModels:
    """The models of a program."""

    def __init__(self, program: Program) -> None:
        self._inner: dict[Model, Value] = {}
        self._made: dict[Model, set[tuple[SourceLocation, ...]]] = {}
        self._own: dict[SourceLocation, Value | None] = {}
        for call in program.calls:
            self._note(call)
        self._trained = {self.stepped(step) for step in optimizer_steps(program)}

    @staticmethod
    @lru_cache(maxsize=1)  # All rules query the same program in succession.
    def of(program: Program) -> ProgramModels:
        """The models of a program."""
        return ProgramModels(program)

    def _note(self, call: LibraryCall) -> None:
        made = _key(call.result)
        if call.name == "torch.nn.Module().__init__" and (own := _key(call.receiver)) is not None:
            self._made.setdefault(own, set()).add(call.at.via)
            self._own.setdefault(own[1], call.receiver)
        if made is None:
            return
        if call.receiver is not None and call.name.rpartition(".")[2] in (*_SAME, "parameters"):
            if _key(call.receiver) != made:
                self._inner[made] = call.receiver
        elif call.name in _WRAPPERS and (call.arguments or "module" in call.keywords):
            self._inner[made] = [*call.arguments, call.keywords.get("module", call.result)][0]
        elif call.receiver is None:
            self._made.setdefault(made, set()).add(call.at.via)

    def model(self, value: Value | None) -> Model | None:
        """The model that a value is, without its wrappers; None if it is not certainly a single one."""
        key = _key(value)
        for _ in range(16):
            inner = self._inner.get(key) if key is not None else None
            if inner is None:
                break
            key = _key(inner)
        return key if key is not None and len(self._made.get(key, ())) == 1 else None

    def owner(self, value: Value | None) -> Model | None:
        """The model that a value is, or the outermost one whose constructor created it."""
        key = _key(value)
        ways = self._made.get(key, set()) if key is not None else set()
        for place in next(iter(ways)) if len(ways) == 1 else ():
            if place in self._own:
                return self.model(self._own[place])
        return self.model(value)

    def stepped(self, step: LibraryCall) -> Model | None:
        """The model whose parameters the optimizer of a ``step`` has; None if unknown."""
        optimizer = stepped_optimizer(step)
        if not isinstance(optimizer, Instance):
            return None
        given = next(iter(optimizer.arguments), optimizer.keywords.get("params"))
        found = {self.model(parameter) for parameter in _parameters(given)}
        return found.pop() if len(found) == 1 else None

    def mode(self, call: LibraryCall, model: Model) -> str:
        """The mode to which a call sets a model: ``train`` or ``eval``.

        ``?`` if it passes the model to something that may set either, empty if it sets none.
        """
        method = call.name.rpartition(".")[2]
        if method in ("eval", "train", "__init__") and self.model(call.receiver) == model:
            off = method == "train" and is_off(argument(call, 0, "mode"))
            return "eval" if off or method == "eval" else "train"
        if method == "from_pretrained" and _key(call.result) == model:
            return "eval"
        given = (*call.arguments, *call.keywords.values())
        is_known = call.name.startswith(("torch.", "builtins."))
        return "?" if not is_known and any(self.model(value) == model for value in given) else ""

    def is_trained(self, model: Model) -> bool:
        """Whether an optimizer steps its parameters."""
        return model in self._trained


def _key(value: Value | None) -> Model | None:
    if not isinstance(value, Instance) or value.place is None:
        return None
    return value.made_by, value.place


def _parameters(value: Value | None) -> Iterator[Instance]:
    """The results of ``model.parameters()`` among the arguments of an optimizer."""
    if isinstance(value, Instance):
        if value.made_by.endswith((".parameters", ".named_parameters")):
            yield value
        for part in (value.part_of, *value.arguments):
            yield from _parameters(part)
    elif isinstance(value, Items):
        for part in value.values:
            yield from _parameters(part)
