"""Neuron coverage (EvalDNN, after Pei et al., DeepXplore, SOSP 2017).

A neuron is a channel of a layer. For each input, a layer's outputs are scaled to 0 to 1 and averaged over space. A
neuron is covered if some input activates it above the threshold. All layers without sub-layers count, except dropout;
a layer that is called twice counts twice.
"""

from __future__ import annotations

import torch
from torch import Tensor

from epochzero_models.classifier import Classifier, ProgressCallback, batches
from epochzero_models.examples import Examples

THRESHOLDS = tuple(n / 10 for n in range(10))


def neuron_coverage(
    classifier: Classifier, examples: Examples, on_progress: ProgressCallback | None = None
) -> tuple[tuple[float, float], ...]:
    """Return each threshold with the share of neurons that the examples cover.

    Raises:
        InputError: the layers cannot be observed, or the model fails.
    """
    layers = classifier.layered().known
    names = [layer.name for layer in layers if not layer.has_parts and not layer.drops]
    highest: list[Tensor] = []
    done = 0
    with torch.no_grad():
        for batch in batches(examples):
            _, calls = classifier.seen(batch, names)
            seen = [_activation(call.output).max(dim=0).values for call in calls]
            highest = (
                [torch.maximum(one, two) for one, two in zip(highest, seen, strict=True)]
                if highest
                else seen
            )
            done += len(batch)
            if on_progress:
                on_progress(f"{classifier.name}: coverage, examples", done, len(examples))
    neurons = torch.cat(highest) if highest else torch.zeros(0)
    return tuple((threshold, _share(neurons > threshold)) for threshold in THRESHOLDS)


def _activation(output: Tensor) -> Tensor:
    """Return the scaled activation of each neuron, shape (n, neurons); 0 for a constant layer."""
    flat = output.flatten(1).float()
    low, high = flat.min(dim=1, keepdim=True).values, flat.max(dim=1, keepdim=True).values
    scaled = (flat - low) / (high - low).clamp_min(torch.finfo(flat.dtype).tiny)
    return scaled.reshape(output.shape).flatten(2).mean(dim=2) if output.ndim > 2 else scaled


def _share(covered: Tensor) -> float:
    return float(covered.double().mean()) if len(covered) else 0.0
