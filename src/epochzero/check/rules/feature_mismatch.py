"""Layers whose sizes do not fit one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from epochzero.check.findings import Finding, Place, Unknown
from epochzero.check.program.events import Called
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, Instance, Value
from epochzero.check.reach import Reach
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.situation import finding_at, guarded
from epochzero.check.target.model import Target

__all__ = ["RULE"]

_LAYERS = {
    "torch.nn.Linear": ("linear", 0, "in_features", 1, "out_features"),
    "torch.nn.Conv1d": ("conv1d", 0, "in_channels", 1, "out_channels"),
    "torch.nn.Conv2d": ("conv2d", 0, "in_channels", 1, "out_channels"),
    "torch.nn.Conv3d": ("conv3d", 0, "in_channels", 1, "out_channels"),
    "torch.nn.BatchNorm1d": ("norm", 0, "num_features", 0, "num_features"),
    "torch.nn.BatchNorm2d": ("conv2d", 0, "num_features", 0, "num_features"),
    "torch.nn.BatchNorm3d": ("conv3d", 0, "num_features", 0, "num_features"),
}
"""Layers by the axis that they look at, and where their sizes stand."""

_KEEP = frozenset(
    [
        "ReLU",
        "ReLU6",
        "GELU",
        "Tanh",
        "Sigmoid",
        "ELU",
        "SELU",
        "LeakyReLU",
        "SiLU",
        "Mish",
        "Softplus",
        "Hardtanh",
        "Hardswish",
        "Dropout",
        "AlphaDropout",
        "Identity",
        "Softmax",
        "LogSoftmax",
        "CELU",
        "Softsign",
        "PReLU",
    ]
)
"""Modules that leave all sizes as they are."""

_KEEP_CHANNELS = frozenset(
    [
        "MaxPool1d",
        "MaxPool2d",
        "MaxPool3d",
        "AvgPool1d",
        "AvgPool2d",
        "AvgPool3d",
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool2d",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "Upsample",
        "ZeroPad2d",
        "ReflectionPad2d",
    ]
)
"""Modules that leave the channels as they are, and other sizes not."""

_FUNCTIONS = frozenset(
    [
        "relu",
        "relu_",
        "tanh",
        "sigmoid",
        "gelu",
        "elu",
        "selu",
        "leaky_relu",
        "silu",
        "dropout",
        "softmax",
        "log_softmax",
    ]
)
_FUNCTIONS_CHANNELS = frozenset(
    ["max_pool1d", "max_pool2d", "max_pool3d", "avg_pool2d", "dropout2d"]
)

_Sizes = tuple[str, int]
"""The axis (``linear``: the last; ``conv2d``: the second of four) and its size."""


def _check(program: Program, target: Target) -> Iterable[Finding | Unknown]:
    reach = Reach.of(program)
    told: set[tuple[Place, str]] = set()
    for call, layer, given in _applied(program):
        wanted = _sizes(layer, giving=False)
        if wanted is None or not _differs(given, wanted):
            continue
        message = (
            f"{_name(layer)} takes {wanted[1]} features and is given {given[1]}."
            if wanted[0] in ("linear", "norm")
            else f"{_name(layer)} takes {wanted[1]} channels and is given {given[1]}."
        )
        if (call.at.place, message) not in told and not guarded(call.at, RuntimeError):
            told.add((call.at.place, message))
            yield finding_at(
                call.at,
                RULE.id,
                RULE.category,
                severity=reach.severity(call.at),
                message=message + _where(layer, call),
                consequence="RuntimeError: mat1 and mat2 shapes cannot be multiplied"
                if wanted[0] == "linear"
                else f"RuntimeError: expected input to have {wanted[1]} channels, but got {given[1]}",
                fix=f"Make the layer before give {wanted[1]}, or this one take {given[1]}.",
            )


def _where(layer: Instance, call: Called) -> str:
    if layer.place is None or layer.place.line == call.at.place.line:
        return ""
    return f" It was made at {layer.place.path}:{layer.place.line}."


def _name(layer: Instance) -> str:
    return layer.made_by.rpartition(".")[2]


def _differs(given: _Sizes, wanted: _Sizes) -> bool:
    return given[0] == wanted[0] and given[1] != wanted[1]


def _sizes(layer: Value | None, giving: bool) -> _Sizes | None:
    """What a layer takes, or gives, where that is a known number."""
    if not isinstance(layer, Instance) or layer.made_by not in _LAYERS:
        return None
    axis, *takes_gives = _LAYERS[layer.made_by]
    position, name = takes_gives[2:] if giving else takes_gives[:2]
    assert isinstance(position, int)
    value = layer.keywords.get(str(name))
    if value is None and position < len(layer.arguments):
        value = layer.arguments[position]
    known = isinstance(value, Constant) and type(value.value) is int
    return (axis, int(str(value.value))) if known and isinstance(value, Constant) else None


def _applied(program: Program) -> Iterator[tuple[Called, Instance, _Sizes]]:
    """Layers that are applied to something of known size: in a Sequential, or called one by one."""
    sizes: dict[Place, _Sizes | None] = {}
    chains: dict[Place, Called] = {}
    for call in program.calls:
        result = call.result.place if isinstance(call.result, Instance) else None
        if call.name == "torch.nn.Sequential" and call.complete:
            yield from _in_chain(call, None)
            if result is not None:
                chains[result] = call
        elif result is not None and call.arguments:
            first = call.arguments[0]
            before = sizes.get(first.place) if isinstance(first, Instance) and first.place else None
            layer = call.receiver if call.name.endswith(".__call__") else None
            if isinstance(layer, Instance) and before is not None and layer.made_by in _LAYERS:
                yield call, layer, before
            after = _after(call, layer, before, chains)
            # The same place with another size: nothing is known of it.
            sizes[result] = after if sizes.get(result, after) == after else None


def _after(
    call: Called, layer: Value | None, before: _Sizes | None, chains: Mapping[Place, Called]
) -> _Sizes | None:
    """The size of what a call gives."""
    if isinstance(layer, Instance):
        if layer.place is not None and layer.place in chains:
            return _last(chains[layer.place], before)
        return _through(layer, before)
    last = call.name.rpartition(".")[2]
    if not call.name.startswith("torch."):
        return None
    if last in _FUNCTIONS:
        return before
    return before if last in _FUNCTIONS_CHANNELS and before and before[0] != "linear" else None


def _through(layer: Instance, before: _Sizes | None) -> _Sizes | None:
    if layer.made_by == "torch.nn.BatchNorm1d":
        return before
    if layer.made_by in _LAYERS:
        return _sizes(layer, giving=True)
    name = _name(layer) if layer.made_by.startswith("torch.nn.") else ""
    if name in _KEEP:
        return before
    return before if name in _KEEP_CHANNELS and before and before[0] != "linear" else None


def _in_chain(call: Called, before: _Sizes | None) -> Iterator[tuple[Called, Instance, _Sizes]]:
    for layer in call.arguments:
        if not isinstance(layer, Instance):
            before = None
            continue
        if before is not None and layer.made_by in _LAYERS:
            yield call, layer, before
        before = _through(layer, before)


def _last(call: Called, before: _Sizes | None) -> _Sizes | None:
    for layer in call.arguments:
        before = _through(layer, before) if isinstance(layer, Instance) else None
    return before


_HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
_NET = (
    _HEAD + "class Net(nn.Module):\n    def __init__(self, hidden):\n        super().__init__()\n"
    "        self.a = nn.Linear(8, hidden)\n        self.b = nn.Linear(512, 2)\n\n"
    "    def forward(self, x):\n        return self.b(F.relu(self.a(x)))\n\n\n"
    "print(Net({})(torch.rand(4, 8)))\n"
)

RULE = Rule(
    id="feature-mismatch",
    title="A layer is given another size than it takes",
    category="tensor_mismatch",
    why="Sizes of layers are looked at when data flows, in the first step or, for a head that only the "
    "evaluation uses, in the last hour.",
    fix="Make the sizes fit: take one from the other.",
    source="Zhang et al., ICSE 2020, section 3.2, Tensor Mismatch: adjacent layers that are incompatible",
    check=_check,
    catches=(
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2))\n"
              "print(net(torch.rand(1, 4)))\n"}, line=6),
        Case({"train.py": _NET.format(256)}, line=13),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(32))\n"
              "print(net)\n"}, line=6),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.MaxPool2d(2), "
              "nn.Conv2d(8, 4, 3))\n"}, line=6),
    ),
    leaves=(
        Case({"train.py": _NET.format(512)}),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Flatten(), "
              "nn.Linear(400, 2))\n"}),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), "
              "nn.Linear(8, 2))\n"}),
        Case({"train.py": _HEAD + "import sys\nnet = nn.Sequential(nn.Linear(4, int(sys.argv[1])), "
              "nn.Linear(9, 2))\n"}, ("9",)),
        Case({"train.py": _HEAD + "a, b = nn.Linear(4, 8), nn.Linear(16, 2)\n"
              "x = a(torch.rand(2, 4))\nprint(b(torch.cat([x, x], 1)))\n"}),
    ),
)  # fmt: skip
