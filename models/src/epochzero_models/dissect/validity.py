"""Snapshot and profile validity (DISSECTOR, section 3; its repository, ``anatomy.py``).

For the final prediction l and a layer's probabilities p, the snapshot validity is

    p_l / (p_l + second highest p)      where the layer predicts l
    1 - max p / (max p + p_l)           where it predicts another class

Both are p_l / (p_l + p_c), with c the most probable class other than l. Of a softmax that is the logistic function
of the difference of their logits, which neither overflows nor divides by 0. The profile validity is the mean over
the layers, weighted by their number x = 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

Growth = Literal["linear", "log", "exp"]

# Layer numbers from 1 -> weights. The first layer's logarithm is 0: it does not count.
WEIGHTS: Mapping[Growth, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "log": torch.log,
    "exp": torch.exp,
}


def snapshot_validity(logits: Tensor, predicted: Tensor) -> Tensor:
    """How far the final prediction stands at a layer, 0 to 1, shape (n,), float64.

    Args:
        logits: of the layer's sub-model, shape (n, classes).
        predicted: class that the whole model predicts, shape (n,).

    >>> probabilities = torch.tensor([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]])
    >>> [round(value, 4) for value in snapshot_validity(probabilities.log(), torch.tensor([0, 1])).tolist()]
    [0.7778, 0.2222]
    """
    chosen, wide = predicted[:, None], logits.double()  # a float near 1 has no room for ranks
    own = wide.gather(1, chosen)[:, 0]
    strongest = wide.scatter(1, chosen, -torch.inf).max(dim=1).values
    return torch.sigmoid(own - strongest)


def profile_validity(snapshots: Tensor, growth: Growth) -> Tensor:
    """The weighted mean over the layers, shape (n,).

    Args:
        snapshots: validity at each layer, the model's outputs last, shape (n, layers), two at least.
        growth: how weights grow with the layer's number.
    """
    numbers = torch.arange(
        1, snapshots.shape[1] + 1, dtype=snapshots.dtype, device=snapshots.device
    )
    weights = WEIGHTS[growth](numbers)
    return snapshots @ (weights / weights.sum())
