"""Neuron coverage (EvalDNN, after Pei et al., DeepXplore, SOSP 2017).

A neuron is a channel of a layer. For each input a layer's outputs are scaled to 0 to 1, then averaged over space. A
neuron is covered when some input brings it above the threshold. Layers are all modules without parts but
dropout; a module that is called twice counts twice.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from epochzero.models.classifier import Classifier, Tell, batches
from epochzero.models.examples import Examples
from epochzero.models.layers import recorded

__all__ = ["THRESHOLDS", "neuron_coverage"]

THRESHOLDS = tuple(n / 10 for n in range(10))
_DROPOUT = nn.modules.dropout._DropoutNd
_CHANNELS_SECOND = (nn.Conv1d, nn.ConvTranspose1d)


def neuron_coverage(
    classifier: Classifier, examples: Examples, tell: Tell | None = None
) -> tuple[tuple[float, float], ...]:
    """Each threshold with the share of neurons that the examples cover.

    Raises:
        InputError: the layers cannot be seen, or the model fails.
    """
    module = classifier.layered()
    # Sequences have their channels last, but for models that convolve over them.
    second = any(isinstance(one, _CHANNELS_SECOND) for one in module.modules())
    highest: list[Tensor] = []
    done = 0
    with torch.no_grad(), recorded(module, _is_layer) as calls:
        for batch in batches(examples):
            classifier.logits(batch)
            seen = [_activation(output, second).max(dim=0).values for _, _, output in calls]
            highest = (
                [torch.maximum(one, two) for one, two in zip(highest, seen, strict=True)]
                if highest
                else seen
            )
            calls.clear()
            done += len(batch)
            if tell:
                tell(f"{classifier.name}: coverage of {done:,} of {len(examples):,} examples")
    neurons = torch.cat(highest) if highest else torch.zeros(0)
    return tuple((one, _share(neurons > one)) for one in THRESHOLDS)


def _is_layer(name: str, module: nn.Module) -> bool:
    return next(module.children(), None) is None and not isinstance(module, _DROPOUT)


def _activation(output: Tensor, second: bool) -> Tensor:
    """Scaled activation of each neuron, shape (n, neurons); of a constant layer 0."""
    flat = output.flatten(1).float()
    low, high = flat.min(dim=1, keepdim=True).values, flat.max(dim=1, keepdim=True).values
    scaled = ((flat - low) / (high - low).clamp_min(torch.finfo(flat.dtype).tiny)).reshape(
        output.shape
    )
    if output.ndim == 3 and not second:
        return scaled.mean(dim=1)
    return scaled.flatten(2).mean(dim=2) if output.ndim > 2 else scaled


def _share(covered: Tensor) -> float:
    return float(covered.double().mean()) if len(covered) else 0.0
