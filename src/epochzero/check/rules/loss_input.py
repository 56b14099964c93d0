"""A loss of probabilities receives scores."""

from __future__ import annotations

from collections.abc import Mapping

from epochzero.check.program.values import Instance, Value
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
from epochzero.check.torch_usage import argument

_BINARY, _LOGARITHMS = "probabilities", "logarithms of probabilities"
_LOSSES: Mapping[str, str] = {
    "torch.nn.BCELoss().__call__": _BINARY,
    "torch.nn.functional.binary_cross_entropy": _BINARY,
    "torch.nn.NLLLoss().__call__": _LOGARITHMS,
    "torch.nn.functional.nll_loss": _LOGARITHMS,
}
_KEEPING = frozenset(["squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "to"])


def _check(program: Program, target: Target) -> Claims:
    for call in program.calls:
        wanted = _LOSSES.get(call.name)
        if wanted is None or not _is_score(argument(call, 0, "input")):
            continue
        binary = wanted == _BINARY
        if not binary or not guarded(call.at, RuntimeError):
            yield claim_at(
                call.at,
                severity=Reach.of(program).severity(call.at) if binary else "warning",
                message=f"The loss expects {wanted}, but receives the output of a linear layer.",
                consequence="RuntimeError: all elements of input should be between 0 and 1; on a GPU: CUDA "
                "error: device-side assert triggered"
                if binary
                else "The loss is negative and decreases without end; the model learns nothing",
                fix="Use BCEWithLogitsLoss, or apply torch.sigmoid before the loss."
                if binary
                else "Use CrossEntropyLoss, or apply log_softmax before the loss.",
            )


def _is_score(value: Value | None) -> bool:
    """Whether a value is the output of a linear layer, at most reshaped."""
    if not isinstance(value, Instance):
        return False
    name = value.made_by
    while name.rpartition(".")[2] in _KEEPING:
        name = name.rpartition(".")[0].removesuffix("()")
    return name.removesuffix("()") == "torch.nn.Linear().__call__"


RULE = Rule(
    title="A loss of probabilities receives scores",
    category="framework_api_misuse",
    why="BCELoss requires numbers between 0 and 1 and fails at the first that is not. NLLLoss "
    "requires log probabilities and accepts anything. Each has a counterpart that accepts "
    "scores.",
    fix="Use BCEWithLogitsLoss or CrossEntropyLoss on scores.",
    source="PyTorch documentation, torch.nn.BCELoss and torch.nn.NLLLoss, meaning of input",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        print(F.binary_cross_entropy(layer(x), y))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x)


        net, loss = Net(), nn.BCELoss()
        print(loss(net(x), y))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x).squeeze(1)


        net, loss = Net(), nn.BCELoss()
        print(loss(net(x), y))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        loss = nn.NLLLoss()
        print(loss(layer(x), y.long()))  # <-
    """),
    leaves=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        print(F.binary_cross_entropy(torch.sigmoid(layer(x)), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x).sigmoid()


        net, loss = Net(), nn.BCELoss()
        print(loss(net(x), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        print(F.binary_cross_entropy_with_logits(layer(x), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        print(F.nll_loss(F.log_softmax(layer(x), 1), y.long()))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 1)
        x, y = torch.rand(8, 4), torch.ones(8, 1)
        print(F.binary_cross_entropy(layer(x).clamp(0, 1), y))
    """),
)
