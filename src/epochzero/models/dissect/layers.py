"""Which layers to look into, and what of their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from epochzero.errors import InputError
from epochzero.models.classifier import Classifier
from epochzero.models.layers import Call, recorded

__all__ = ["MOST_FEATURES", "choose_layers", "pooled", "snapshots_of"]

LAYERS = 6
MOST_FEATURES = 1024
"""Of a layer, after pooling."""
# What only finishes the layer before it, in the same part of the model: that one is looked into after it.
_FINISHING = (
    "torch.nn.modules.activation",
    "torch.nn.modules.batchnorm",
    "torch.nn.modules.instancenorm",
    "torch.nn.modules.normalization",
)
# What hands on what it was given.
_HANDING_ON = (nn.Flatten, nn.Identity, nn.modules.dropout._DropoutNd)


def choose_layers(classifier: Classifier, batch: Tensor, count: int = LAYERS) -> tuple[str, ...]:
    """Names of modules at about even steps of depth, the last one before the outputs among them.

    Modules at the lowest level of nesting that has enough of them are taken, after their
    normalization and activation; none that is called more than once.

    Args:
        classifier: whose modules.
        batch: inputs to see what is called.
        count: how many at most.

    Raises:
        InputError: there is none before the outputs, or the layers cannot be seen.
    """
    candidates = _candidates(classifier, batch)
    if not candidates:
        raise InputError(
            f"{classifier.name}: has no module before its outputs that gives one tensor; parts of a model "
            "can be looked into where they are modules of their own"
        )
    for depth in range(1, 1 + max(name.count(".") + 1 for name in candidates)):
        level = [name for name in candidates if name.count(".") < depth]
        if len(level) >= count:
            break
    steps = torch.linspace(0, len(level) - 1, min(count, len(level))).round().int().tolist()
    return tuple(level[at] for at in steps)


def _candidates(classifier: Classifier, batch: Tensor) -> list[str]:
    """Modules whose outputs are a step of their own, in the order of their calls."""
    with torch.no_grad(), recorded(classifier.layered(), lambda name, layer: True) as calls:
        classifier.logits(batch[:2])
    size = min(2, len(batch))
    steps = [
        one
        for one in calls
        if one[2].ndim > 1 and len(one[2]) == size and not isinstance(one[1], _HANDING_ON)
    ]
    names = [name for name, _, _ in steps]
    return [
        call[0]
        for call, following in pairwise(steps)
        if names.count(call[0]) == 1
        and not _finishes(call, following)
        and call[2].data_ptr() != steps[-1][2].data_ptr()
    ]


def _finishes(call: Call, following: Call) -> bool:
    """Whether the next call only finishes this one, or is the container that hands it out."""
    (name, _, output), (next_name, module, after) = call, following
    if name.startswith(f"{next_name}."):
        return output.data_ptr() == after.data_ptr()
    siblings = name.rpartition(".")[0] == next_name.rpartition(".")[0]
    finishing = type(module).__module__ in _FINISHING and output.numel() == after.numel()
    return siblings and finishing


def pooled(output: Tensor) -> Tensor:
    """At most `MOST_FEATURES` numbers of a layer's output, shape (n, features), float32.

    Maps are averaged over areas, sequences over their positions, the rest is cut into even ranges.
    """
    if output.ndim == 4:
        side = max(1, int((MOST_FEATURES / output.shape[1]) ** 0.5))
        if max(output.shape[2:]) > side:
            output = functional.adaptive_avg_pool2d(output, side)
    elif output.ndim == 3:
        output = output.mean(dim=1)
    flat = output.flatten(1).float()
    if flat.shape[1] > MOST_FEATURES:
        flat = functional.adaptive_avg_pool1d(flat, MOST_FEATURES)
    return flat


def snapshots_of(
    classifier: Classifier, layers: Sequence[str], calls: Sequence[Call]
) -> list[Tensor]:
    """The pooled outputs of the layers of one forward.

    Raises:
        InputError: one of them was not called once.
    """
    outputs: list[Tensor] = []
    for layer in layers:
        own = [output for name, _, output in calls if name == layer]
        if len(own) != 1:
            told = "is not called or gives no tensor" if not own else f"is called {len(own)} times"
            raise InputError(f"{classifier.name}: its layer {layer!r} {told}; choose another")
        outputs.append(pooled(own[0]))
    return outputs
