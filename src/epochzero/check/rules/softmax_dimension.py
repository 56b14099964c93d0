"""Probabilities are normalized over the samples of a batch, not over the classes."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.origins import Origins
from epochzero.check.program.events import Called
from epochzero.check.program.values import Instance, Value
from epochzero.check.rules.base import Claims, Program, Rule, Target, claim_at, examples
from epochzero.check.rules.world import number
from epochzero.check.torch_usage import argument

_FUNCTIONS = ("softmax", "log_softmax")
_LAYERS = ("torch.nn.Softmax", "torch.nn.LogSoftmax")
_LOSSES = ("torch.nn.NLLLoss().__call__", "torch.nn.functional.nll_loss")


def _check(program: Program, target: Target) -> Claims:
    origins = Origins.of(program)
    reported = set()
    for value in _by_class(program):
        maker = origins.maker(origins.before(value))
        if maker is None or not _over_samples(maker) or maker.at.place in reported:
            continue
        reported.add(maker.at.place)
        yield claim_at(
            maker.at,
            severity="warning",
            message="The probabilities of each class sum to 1 over the samples of the batch: axis 0 "
            "is the batch.",
            consequence="The output of each sample depends on the other samples of its batch",
            fix="Apply it along the classes: dim=1, or dim=-1.",
        )


def _by_class(program: Program) -> Iterator[Value | None]:
    """Tensors that certainly have their samples along axis 0 and their classes along another."""
    for call in program.calls:
        last = call.name.rpartition(".")[2]
        if call.name in _LOSSES:
            yield argument(call, 0, "input")
        elif last in ("argmax", "max", "topk") and call.name.startswith("torch."):
            is_method = call.receiver is not None
            value = call.receiver if is_method else argument(call, 0, "input")
            axis = argument(call, (last == "topk") + (not is_method), "dim")
            is_shaped = isinstance(value, Instance) and value.shape is not None
            if number(axis) == 1 or (number(axis) == -1 and is_shaped):
                yield value


def _over_samples(maker: Called) -> bool:
    """Whether a call normalizes axis 0 of a tensor with at least two axes."""
    last = maker.name.rpartition(".")[2]
    axis: Value | None = None
    if last in _FUNCTIONS and maker.name.startswith("torch."):
        axis = argument(maker, 0 if maker.receiver is not None else 1, "dim")
    elif (
        last == "__call__"
        and isinstance(maker.receiver, Instance)
        and maker.receiver.made_by in _LAYERS
    ):
        layer = maker.receiver
        axis = layer.arguments[0] if layer.arguments else layer.keywords.get("dim")
    shape = maker.result.shape if isinstance(maker.result, Instance) else None
    return number(axis) == 0 and (shape is None or len(shape) == 2)


RULE = Rule(
    title="Probabilities are normalized over the samples of a batch",
    category="framework_api_misuse",
    why="Axis 0 is the batch. A softmax along it normalizes over the samples: no error occurs, "
    "but the output of a sample depends on the other samples in the batch.",
    fix="Apply softmax along the classes: dim=1, or dim=-1.",
    source="PyTorch documentation, torch.nn.functional.softmax: dim, along which the slices sum to 1",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        p = F.log_softmax(layer(x), dim=0)  # <-
        print(F.nll_loss(p, y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 3)
                self.last = nn.LogSoftmax(dim=0)

            def forward(self, x):
                return self.last(self.fc(x))  # <-


        net, loss = Net(), nn.NLLLoss()
        print(loss(net(x), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        p = torch.softmax(layer(x), 0)  # <-
        print(p.argmax(dim=1))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        print(layer(x).softmax(0).max(1))  # <-
    """),
    leaves=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        p = F.log_softmax(layer(x), dim=1)
        print(F.nll_loss(p, y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 3)
                self.last = nn.LogSoftmax(dim=-1)

            def forward(self, x):
                return self.last(self.fc(x))


        net, loss = Net(), nn.NLLLoss()
        print(loss(net(x), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        weights = F.softmax(layer(x), dim=0)
        print((weights * x[:, :3]).sum(0))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        print(F.softmax(layer(x[0]), dim=0).argmax())
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        print(layer(x[0]).softmax(0).argmax(-1))
    """),
)
