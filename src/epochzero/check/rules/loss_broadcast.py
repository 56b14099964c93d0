"""A loss compares each prediction with each target because their shapes differ."""

from __future__ import annotations

from epochzero.check.program.values import Instance, Value
from epochzero.check.rules.base import Claims, Program, Rule, Target, claim_at, examples
from epochzero.check.torch_usage import argument

_MODULES = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")
_FUNCTIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_LOSSES = frozenset(
    [
        *(f"torch.nn.{name}().__call__" for name in _MODULES),
        *(f"torch.nn.functional.{name}" for name in _FUNCTIONS),
    ]
)
_Shape = tuple[int | None, ...]


def _check(program: Program, target: Target) -> Claims:
    for call in program.calls:
        if call.name not in _LOSSES:
            continue
        given, wanted = _shape(argument(call, 0, "input")), _shape(argument(call, 1, "target"))
        if given is not None and wanted is not None and _spreads(given, wanted):
            yield claim_at(
                call.at,
                severity="warning",
                message=f"The loss compares {_shown(given)} with {_shown(wanted)}: both are broadcast "
                "along the other's axis.",
                consequence="The loss is the mean over all pairs of samples; the model learns the average "
                "of the targets",
                fix="Give both the same shape, with squeeze(-1) or unsqueeze(-1).",
            )


def _shape(value: Value | None) -> _Shape | None:
    return value.shape if isinstance(value, Instance) else None


def _spreads(one: _Shape, other: _Shape) -> bool:
    """Whether both are broadcast: each has size 1 on an axis where the other is larger."""
    rank = max(len(one), len(other))
    left, right = ((1,) * (rank - len(shape)) + shape for shape in (one, other))
    pairs = list(zip(left, right, strict=True))
    return any(a == 1 != b for a, b in pairs) and any(a != 1 == b for a, b in pairs)


def _shown(shape: _Shape) -> str:
    return f"[{', '.join('?' if one is None else str(one) for one in shape)}]"


RULE = Rule(
    title="A loss compares each prediction with each target",
    category="framework_api_misuse",
    why="A model for one number returns [N, 1], and the data often have [N]. Regression losses "
    "broadcast both to [N, N] with only a warning. The training continues, and the model "
    "learns the mean.",
    fix="Give predictions and targets the same shape.",
    source="PyTorch, torch.nn.functional.mse_loss: warning of a target size that is different to the input "
    "size; PyTorch documentation, Broadcasting semantics",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        layer = nn.Linear(4, 1)
        print(F.mse_loss(layer(x), y))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x)


        from torch.utils.data import DataLoader, TensorDataset

        net, loss = Net(), nn.MSELoss()
        for x, y in DataLoader(TensorDataset(x, y), batch_size=4):
            print(loss(net(x), y))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        criterion = nn.L1Loss()
        print(criterion(net(x), y))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        print(F.huber_loss(nn.Linear(4, 1)(x).flatten(), y.view(-1, 1)))  # <-
    """),
    leaves=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x).squeeze(-1)


        from torch.utils.data import DataLoader, TensorDataset

        net, loss = Net(), nn.MSELoss()
        for x, y in DataLoader(TensorDataset(x, y), batch_size=4):
            print(loss(net(x), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        print(F.mse_loss(nn.Linear(4, 1)(x), y.unsqueeze(1)))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        print(F.mse_loss(nn.Linear(4, 1)(x)[:, 0], y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        print(F.mse_loss(nn.Linear(4, 1)(x), torch.tensor(0.5)))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        x, y = torch.rand(8, 4), torch.rand(8)
        print(F.mse_loss(nn.Linear(4, 3)(x), torch.rand(8, 1)))
    """),
)
