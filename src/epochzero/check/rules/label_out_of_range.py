"""A label exceeds the number of classes, or an index the rows of an embedding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from epochzero.check.origins import Origins
from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant, Instance, Items, Value
from epochzero.check.rules.base import (
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.rules.world import number
from epochzero.check.torch_usage import argument

SURE = 1e-3
"""Random numbers certainly exceed a limit if the chance that none does is smaller than this."""
_LOSSES = ("torch.nn.CrossEntropyLoss().__call__", "torch.nn.NLLLoss().__call__",
           "torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss")  # fmt: skip
_KEEPING = frozenset(["to", "cuda", "cpu", "long", "int", "clone", "detach", "contiguous", "view",
                      "reshape", "flatten", "squeeze", "unsqueeze", "repeat", "expand"])  # fmt: skip
_BATCH = "torch.utils.data.DataLoader()[]["


@dataclass(frozen=True, slots=True)
class _Range:
    """The integers of a tensor: the highest, and whether it certainly occurs."""

    highest: int
    drawn: int | None = None
    low: int = 0

    def passes(self, size: int) -> float:
        """The chance that no number is ``size`` or higher."""
        if self.highest < size:
            return 1.0
        if self.drawn is None:
            return 0.0
        share = max(0.0, (size - self.low) / (self.highest + 1 - self.low))
        return math.pow(share, self.drawn)


def _check(program: Program, target: Target) -> Claims:
    tensors = _Tensors(program)
    reach = Reach.of(program)
    for call in program.calls:
        for size, indices, what, error in _uses(call, tensors):
            chance = indices.passes(size)
            if chance < 1 and not guarded(call.at, IndexError, RuntimeError):
                yield claim_at(
                    call.at,
                    severity=reach.severity(call.at) if chance < SURE else "warning",
                    message=f"{what}, but receives numbers up to {indices.highest}.",
                    consequence=f"{error}; on a GPU: CUDA error: device-side assert triggered",
                    fix=f"Increase it to at least {indices.highest + 1}, or correct the numbers.",
                )
                break


def _uses(call: Called, tensors: _Tensors) -> Iterator[tuple[int, _Range, str, str]]:
    """Tensors that are used as indices, with the size of what they index."""
    if call.name == "torch.nn.Embedding().__call__" and isinstance(call.receiver, Instance):
        size = number(_given(call.receiver, 0, "num_embeddings"))
        indices = tensors.range_of(argument(call, 0, "input"))
        if size is not None and indices is not None:
            yield size, indices, f"The embedding has {size} rows", "IndexError: index out of range"
    elif call.name in _LOSSES:
        size = tensors.classes_of(argument(call, 0, "input"))
        indices = tensors.range_of(argument(call, 1, "target"))
        if size is not None and indices is not None:
            error = f"IndexError: Target {indices.highest} is out of bounds."
            yield size, indices, f"The loss receives scores of {size} classes", error


def _given(made: Instance, position: int, name: str) -> Value | None:
    if name in made.keywords:
        return made.keywords[name]
    return made.arguments[position] if position < len(made.arguments) else None


class _Tensors:
    """What is known about the tensors of a program, by where they are created."""

    def __init__(self, program: Program) -> None:
        self._calls = program.calls
        self._maker = Origins.of(program).maker

    def range_of(self, value: Value | None) -> _Range | None:
        """The numbers of a tensor; None if they are not known."""
        value = self._source(value)
        if not isinstance(value, Instance):
            return None
        if value.made_by.startswith(_BATCH):
            return self._of_batch(value.made_by)
        arguments = [number(one) for one in value.arguments]
        if value.made_by in ("torch.tensor", "torch.LongTensor") and value.arguments:
            numbers = list(_numbers(value.arguments[0]))
            known = [one for one in numbers if one is not None]
            return _Range(max(known)) if known and len(known) == len(numbers) else None
        if value.made_by == "torch.arange" and len(arguments) in (1, 2):
            end = arguments[-1]
            return _Range(end - 1) if end is not None and end > 0 else None
        return _drawn(value) if value.made_by == "torch.randint" else None

    def classes_of(self, value: Value | None) -> int | None:
        """The size of the last axis of a linear layer's output; with two axes these are the classes."""
        value = self._source(value)
        call = self._maker(value) if isinstance(value, Instance) else None
        layer = call.receiver if call is not None else None
        if not isinstance(layer, Instance):
            return None
        if layer.made_by == "torch.nn.Sequential" and layer.arguments:
            last = layer.arguments[-1]
            layer = last if isinstance(last, Instance) else layer
        if layer.made_by != "torch.nn.Linear":
            return None
        return number(_given(layer, 1, "out_features"))

    def _source(self, value: Value | None) -> Value | None:
        """The tensor before it was moved or reshaped."""
        for _ in range(8):
            if not isinstance(value, Instance):
                return value
            owner, _, method = value.made_by.rpartition(".")
            if method not in _KEEPING:
                return value
            if owner.startswith(_BATCH):
                value = Instance(owner)
                continue
            call = self._maker(value)
            value = None if call is None else call.receiver
        return None

    def _of_batch(self, made_by: str) -> _Range | None:
        """The numbers of the tensors at this position in the job's data sets, if all have some."""
        position = made_by.removeprefix(_BATCH).partition("]")[0]
        if not position.isdecimal() or made_by != f"{_BATCH}{position}]":
            return None
        sets = [one for one in self._calls if one.name == "torch.utils.data.TensorDataset"]
        loaded = [one for one in self._calls if one.name == "torch.utils.data.DataLoader"]
        ranges = [self.range_of(one.arguments[int(position)]) for one in sets
                  if int(position) < len(one.arguments)]  # fmt: skip
        known = [one for one in ranges if one is not None]
        if not known or len(known) != len(ranges) or len(loaded) != len(sets):
            return None
        return min(known, key=lambda one: one.highest)


def _numbers(value: Value) -> Iterator[int | None]:
    """The numbers in nested lists; None for anything that is not an integer."""
    if isinstance(value, Items) and value.complete and value.kind in ("list", "tuple"):
        for one in value.values:
            yield from _numbers(one)
    else:
        yield number(value)


def _drawn(value: Instance) -> _Range | None:
    """``torch.randint(high, size)`` or ``torch.randint(low, high, size)``."""
    sizes = next((one for one in value.arguments if isinstance(one, Items)), None)
    bounds = [number(one) for one in value.arguments if isinstance(one, Constant)]
    low, high = (0, bounds[0]) if len(bounds) == 1 else (*bounds, None, None)[:2]
    size = sizes if sizes is not None else value.keywords.get("size")
    if low is None or high is None or not isinstance(size, Items):
        return None
    axes = [number(one) for one in size.values]
    return _Range(high - 1, math.prod(axis or 1 for axis in axes), low)


RULE = Rule(
    title="A label or index exceeds the number of classes or the size of the embedding",
    category="illegal_index",
    why="An embedding has a fixed number of rows, and a loss as many classes as the last layer "
    "has outputs. A word, a position or a label beyond them ends the job; on a GPU the error "
    "message names neither.",
    fix="Make the embedding or the layer as large as the data requires.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Index; PyTorch documentation, torch.nn.Embedding and "
    "torch.nn.CrossEntropyLoss",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        words = nn.Embedding(100, 8)
        print(words(torch.tensor([[1, 2], [3, 100]])))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        words = nn.Embedding(100, 8)
        print(words(torch.arange(128)))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        words = nn.Embedding(100, 8)
        print(words(torch.randint(0, 120, (8, 64)).to('cpu')))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        from torch.utils.data import DataLoader, TensorDataset


        class Net(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.head = nn.Linear(4, classes)

            def forward(self, x):
                return self.head(x)


        data = TensorDataset(torch.rand(500, 4), torch.randint(0, 10, (500,)))
        net, loss = Net(9), nn.CrossEntropyLoss()
        for x, y in DataLoader(data, batch_size=10):
            print(loss(net(x), y.to('cpu')))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        print(F.cross_entropy(nn.Linear(4, 3)(torch.rand(2, 4)), torch.tensor([0, 3])))  # <-
    """),
    leaves=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        words = nn.Embedding(100, 8)
        print(words(torch.tensor([[1, 2], [3, 99]])))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        words = nn.Embedding(100, 8)
        print(words(torch.arange(100)))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        words = nn.Embedding(100, 8)
        print(words(torch.randint(100, (8, 64))))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        from torch.utils.data import DataLoader, TensorDataset


        class Net(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.head = nn.Linear(4, classes)

            def forward(self, x):
                return self.head(x)


        data = TensorDataset(torch.rand(500, 4), torch.randint(0, 10, (500,)))
        net, loss = Net(10), nn.CrossEntropyLoss()
        for x, y in DataLoader(data, batch_size=10):
            print(loss(net(x), y.to('cpu')))
    """),
)
