"""Numbers that describe a tensor, few elements of it read, all numbers of one look fetched at once.

A large tensor is read at even distances, so that the cost of a look does not grow with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = [
    "ACTIVATION", "GRADIENT", "SPREAD", "VALUES", "Look", "activation", "few", "gradient", "spread",
    "values",
]  # fmt: skip

MOST_ELEMENTS = 8192
MOST_ROWS = 128

VALUES = ("mean", "std", "min", "max", "zeros", "nonfinite")
ACTIVATION = (*VALUES, "constant", "low", "high", "spread")
SPREAD = (*VALUES, "p5", "p25", "p50", "p75", "p95")
GRADIENT = ("rms", "largest", "zeros", "nonfinite")


class Look:
    """Collects vectors of numbers, and reads them together: one wait for the GPU a look."""

    def __init__(self) -> None:
        self._wanted: list[tuple[dict[str, Any], Sequence[str], torch.Tensor]] = []

    def add(self, into: dict[str, Any], names: Sequence[str], numbers: torch.Tensor) -> None:
        """Numbers that `read` puts into a dictionary under these names."""
        self._wanted.append((into, names, numbers))

    def read(self) -> None:
        """Fetches all numbers."""
        wanted, self._wanted = self._wanted, []
        by_device: dict[Any, list[tuple[dict[str, Any], Sequence[str], torch.Tensor]]] = {}
        for item in wanted:
            by_device.setdefault((item[2].device, item[2].dtype), []).append(item)
        for items in by_device.values():
            numbers = torch.cat([vector for _, _, vector in items]).tolist()
            at = 0
            for into, names, vector in items:
                into.update(zip(names, numbers[at : at + vector.numel()], strict=True))
                at += vector.numel()


def few(tensor: torch.Tensor, most: int = MOST_ELEMENTS) -> torch.Tensor:
    """At most so many elements at even distances, as a flat tensor in single precision."""
    flat = tensor.detach()
    if flat.is_sparse or flat.layout is not torch.strided:
        flat = flat.coalesce().values() if flat.is_sparse else flat.to_dense()
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    if flat.numel() > most and flat.dim() > 1 and not flat.is_contiguous():
        flat = flat[:: max(1, min(flat.shape[0], flat.numel() // most))]
    flat = flat.reshape(-1)
    if flat.numel() > most:
        flat = flat[:: -(-flat.numel() // most)]
    return flat.float()


def values(tensor: torch.Tensor) -> torch.Tensor:
    """`VALUES` of a tensor; its mean and so on are of what is finite."""
    flat = few(tensor)
    finite = torch.isfinite(flat)
    clean = torch.where(finite, flat, torch.zeros_like(flat))
    count = finite.sum().clamp(min=1)
    mean = clean.sum() / count
    variance = torch.where(finite, (flat - mean) ** 2, torch.zeros_like(flat)).sum() / count
    return torch.stack(
        [
            mean,
            variance.sqrt(),
            torch.where(finite, flat, mean).min(),
            torch.where(finite, flat, mean).max(),
            (flat == 0).float().mean(),
            1 - finite.float().mean(),
        ]
    )


def activation(output: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """`ACTIVATION` of a layer's output.

    Args:
        output: examples in the first dimension; units in the second of an image, else the last.
        low, high: where the function saturates.

    Returns:
        `VALUES`; ``constant``: the share of units that give the same for all examples; ``low`` and
        ``high``: of values in saturation; ``spread``: how much a unit differs between examples, beside
        how large it is.
    """
    flat = few(output)
    of_units = _units(output)
    lowest, highest = of_units.amin(0), of_units.amax(0)
    size = torch.maximum(lowest.abs(), highest.abs())
    constant = (highest - lowest <= 1e-6 * size).float().mean()
    spread = of_units.std(0, unbiased=False).mean() / (of_units.abs().mean() + 1e-12)
    rest = torch.stack(
        [constant, (flat <= low).float().mean(), (flat >= high).float().mean(), spread]
    )
    return torch.cat([values(output), rest])


def spread(tensor: torch.Tensor) -> torch.Tensor:
    """`SPREAD` of a tensor: `VALUES`, and percentiles of what is finite."""
    flat = few(tensor)
    finite = flat[torch.isfinite(flat)]
    at = torch.tensor((0.05, 0.25, 0.5, 0.75, 0.95), device=flat.device)
    percentiles = finite.quantile(at) if finite.numel() else torch.full_like(at, float("nan"))
    return torch.cat([values(tensor), percentiles])


def _units(output: torch.Tensor) -> torch.Tensor:
    """A few observations by units."""
    found = output.detach()
    if found.is_complex():
        found = found.abs()
    if found.dim() == 1:
        return found[:MOST_ROWS].float().unsqueeze(1)
    units = 1 if found.dim() >= 4 or found.dim() == 2 else found.dim() - 1
    if units != found.dim() - 1:
        # Of an image every place is an observation of its channel.
        found = found[:MOST_ROWS].flatten(2)
        found = found[..., :: max(1, found.shape[-1] // 64)].transpose(1, 2)
    found = found.reshape(-1, found.shape[-1])
    step = max(1, found.shape[0] // (8 * MOST_ROWS))
    return found[::step].float()


def gradient(tensor: torch.Tensor) -> torch.Tensor:
    """`GRADIENT` of a gradient, a weight or an update."""
    flat = few(tensor)
    finite = torch.isfinite(flat)
    clean = torch.where(finite, flat, torch.zeros_like(flat))
    return torch.stack(
        [
            # Scaled first: the square of a small gradient is nothing in single precision.
            _rms(clean),
            clean.abs().max(),
            (flat == 0).float().mean(),
            1 - finite.float().mean(),
        ]
    )


def _rms(clean: torch.Tensor) -> torch.Tensor:
    largest = clean.abs().max().clamp(min=1e-37)
    return (clean / largest).pow(2).mean().sqrt() * largest
