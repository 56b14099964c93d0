"""Which layers to look into, and what of their outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from epochzero.errors import InputError
from epochzero_models.classifier import Classifier
from epochzero_models.layers import Layer, LayerCall

LAYERS = 6
MOST_FEATURES = 1024
"""Of a layer, after pooling."""


def choose_layers(classifier: Classifier, batch: Tensor, count: int = LAYERS) -> tuple[str, ...]:
    """Names of layers at about even steps of depth, the last one before the outputs among them.

    Layers at the lowest level of nesting that has enough of them are taken, after their
    normalization and activation; none that is called more than once.

    Args:
        classifier: whose layers.
        batch: inputs to see what is called.
        count: how many at most.

    Raises:
        InputError: there is none before the outputs, or the layers cannot be seen.
    """
    candidates = _candidates(classifier, batch)
    if not candidates:
        raise InputError(
            f"{classifier.name}: no layer before the output returns a single tensor; only parts of a model that "
            "are modules can be dissected"
        )
    for depth in range(1 + max(candidate.depth for candidate in candidates)):
        level = [candidate for candidate in candidates if candidate.depth <= depth]
        if len(level) >= count:
            break
    steps = torch.linspace(0, len(level) - 1, min(count, len(level))).round().int().tolist()
    return tuple(level[at].name for at in steps)


def _candidates(classifier: Classifier, batch: Tensor) -> list[Layer]:
    """Layers whose outputs are a step of their own, in the order of their calls."""
    names = [layer.name for layer in classifier.layered().known]
    with torch.no_grad():
        _, calls = classifier.seen(batch[:2], names)
    steps = [call for call in calls if not call.layer.hands_on]
    called = Counter(step.layer.name for step in steps)
    return [
        call.layer
        for call, following in pairwise(steps)
        if called[call.layer.name] == 1
        and not _finished(call, following)
        and call.output.data_ptr() != steps[-1].output.data_ptr()
    ]


def _finished(call: LayerCall, following: LayerCall) -> bool:
    """Whether the next call only finishes this one, or is the container that hands it out."""
    layer, after = call.layer, following.layer
    if f"{layer.container}.".startswith(f"{after.name}."):
        return call.output.data_ptr() == following.output.data_ptr()
    alike = call.output.numel() == following.output.numel()
    return layer.container == after.container and after.finishes and alike


def pooled(output: Tensor) -> Tensor:
    """At most `MOST_FEATURES` numbers of a layer's output, shape (n, channels, ...); (n, features), float32.

    Maps are averaged over areas, sequences over their positions, the rest is cut into even ranges.
    """
    if output.ndim == 4:
        side = max(1, int((MOST_FEATURES / output.shape[1]) ** 0.5))
        if max(output.shape[2:]) > side:
            rows, columns = (_averages(length, side, output) for length in output.shape[2:])
            output = rows @ output @ columns.T
    elif output.ndim == 3:
        output = output.mean(dim=2)
    flat = output.flatten(1).float()
    if flat.shape[1] > MOST_FEATURES:
        flat = flat @ _averages(flat.shape[1], MOST_FEATURES, flat).T
    return flat


def _averages(length: int, parts: int, like: Tensor) -> Tensor:
    """The matrix of adaptive average pooling to so many parts, which ONNX cannot export for all lengths."""
    identity = torch.eye(length, dtype=like.dtype, device=like.device)
    return functional.adaptive_avg_pool1d(identity, parts).T


def snapshots_of(
    classifier: Classifier, layers: Sequence[str], calls: Sequence[LayerCall]
) -> list[Tensor]:
    """The pooled outputs of the layers of one forward.

    Raises:
        InputError: one of them was not called once.
    """
    outputs: list[Tensor] = []
    for layer in layers:
        own = [call.output for call in calls if call.layer.name == layer]
        if len(own) != 1:
            problem = (
                f"is called {len(own)} times"
                if own
                else "is not called, or gives no tensor with a row of real numbers for each input"
            )
            raise InputError(f"{classifier.name}: its layer {layer!r} {problem}; choose another")
        outputs.append(pooled(own[0]))
    return outputs
