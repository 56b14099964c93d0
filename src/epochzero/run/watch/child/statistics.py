"""Numbers that describe a tensor, few elements of it read, all numbers of one look fetched at once.

A large tensor is read at even distances, so that the cost of a look does not grow with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any

import torch

Numbers = torch.Tensor | list[float]
"""A vector on a GPU, not to be read yet; else what it holds."""
MOST_ELEMENTS = 8192
_RUN = 8
MOST_ROWS = 128
MOST_UNITS = 256

VALUES = ("mean", "std", "min", "max", "zeros", "nonfinite")
ACTIVATION = (*VALUES, "constant", "low", "high", "spread")
DISTRIBUTION = (*VALUES, "p5", "p25", "p50", "p75", "p95")
GRADIENT = ("rms", "largest", "zeros", "nonfinite")


class Look:
    """Collects numbers, and reads those that a GPU holds together: one wait a look."""

    def __init__(self) -> None:
        self._wanted: list[tuple[dict[str, Any], Sequence[str], torch.Tensor]] = []

    def add(self, into: dict[str, Any], names: Sequence[str], numbers: Numbers) -> None:
        """Numbers that are put into a dictionary under these names, at once or by `read`."""
        if isinstance(numbers, torch.Tensor):
            self._wanted.append((into, names, numbers))
        else:
            into.update(zip(names, numbers, strict=True))

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


def number_in(tensor: torch.Tensor) -> float:
    """The number in a tensor, read in a way that is not watched."""
    value: Any = tensor.tolist()
    return float(value)


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether a tensor is an array of numbers, as most are."""
    strided = tensor.layout is torch.strided and not tensor.is_nested
    return strided and not tensor.is_meta and not tensor.is_quantized


def few(tensor: torch.Tensor, most: int = MOST_ELEMENTS) -> torch.Tensor:
    """At most so many elements in short runs at even distances, flat, in single precision.

    A run is what memory fetches at once. Single elements at even distances would cost as much as
    everything, and may all be of the same column.
    """
    # Of a tensor that is spread over processes our part: to ask for the others would wait for them.
    flat = getattr(tensor, "_local_tensor", tensor).detach()
    if flat.is_sparse or flat.layout is not torch.strided:
        flat = flat.coalesce().values() if flat.is_sparse else flat.to_dense()
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    if flat.numel() > most and flat.dim() > 1 and not flat.is_contiguous():
        flat = flat[:: max(1, min(flat.shape[0], flat.numel() // most))]
    flat = flat.reshape(-1)
    if flat.numel() > most:
        runs = most // _RUN
        length = flat.numel() // runs
        flat = flat[: runs * length].view(runs, length)[:, :_RUN].reshape(-1)
    return flat.float()


def fingerprint(tensor: torch.Tensor, most: int = 256) -> torch.Tensor:
    """Return a number that depends on at most `most` elements and on their order."""
    flat = few(tensor, most)
    weights = torch.arange(1, len(flat) + 1, device=flat.device).sin()
    return (flat * weights).sum().reshape(1)


def values(tensor: torch.Tensor) -> Numbers:
    """`VALUES` of a tensor; its mean and so on are of what is finite."""
    return _values(few(tensor))


def _values(flat: torch.Tensor) -> Numbers:
    if flat.device.type == "cpu":
        low, high = (number_in(tensor) for tensor in flat.aminmax())
        if isfinite(low) and isfinite(high):
            return [*_mean_and_spread(flat), low, high, _zeros(flat), 0.0]
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


def _mean_and_spread(flat: torch.Tensor) -> tuple[float, float]:
    """Four times as fast as `torch.std_mean`, which is asked where squares are no numbers of single precision."""
    mean = flat.mean()
    squares = number_in(torch.linalg.vector_norm(flat - mean))
    if 1e-15 < squares < 1e18:
        return number_in(mean), squares / sqrt(flat.numel())
    spread, mean = torch.std_mean(flat, correction=0)
    return number_in(mean), number_in(spread)


def _zeros(flat: torch.Tensor) -> float:
    return 1 - number_in(torch.count_nonzero(flat)) / flat.numel()


def activation(output: torch.Tensor, low: float, high: float) -> Numbers:
    """`ACTIVATION` of a layer's output.

    Args:
        output: examples in the first dimension; units in the second of an image, else the last.
        low, high: where the function saturates.

    Returns:
        `VALUES`; ``constant``: the share of units that give the same for all examples; ``low`` and
        ``high``: of values in saturation; ``spread``: how much a unit differs between examples, relative to
        its size.
    """
    flat = few(output)
    of_units = _units(output)
    lowest, highest = of_units.aminmax(dim=0)
    size = torch.maximum(lowest.abs(), highest.abs())
    constant = (highest - lowest <= 1e-6 * size).float().mean()
    # A fifth of the time of `std(0)`.
    spread = (of_units - of_units.mean(0)).square_().mean(0).sqrt_().mean()
    spread = spread / (of_units.abs().mean() + 1e-12)
    rest = [constant, constant, constant, spread]
    if isfinite(low):
        rest[1:3] = [(flat <= low).float().mean(), (flat >= high).float().mean()]
    numbers = torch.stack(rest)
    if not isfinite(low):
        numbers[1:3] = 0
    described = _values(flat)
    if isinstance(described, torch.Tensor):
        return torch.cat([described, numbers])
    return [*described, *map(number_in, numbers)]


def distribution(tensor: torch.Tensor) -> Numbers:
    """`DISTRIBUTION` of a tensor: `VALUES`, and percentiles of what is finite."""
    flat = few(tensor)
    finite = flat[torch.isfinite(flat)]
    at = torch.tensor((0.05, 0.25, 0.5, 0.75, 0.95), device=flat.device)
    percentiles = finite.quantile(at) if finite.numel() else torch.full_like(at, float("nan"))
    described = _values(flat)
    if isinstance(described, torch.Tensor):
        return torch.cat([described, percentiles])
    return [*described, *map(number_in, percentiles)]


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
    rows, columns = (
        -(-size // most)
        for size, most in zip(found.shape, (2 * MOST_ROWS, MOST_UNITS), strict=True)
    )
    return found[::rows, ::columns].float()


def gradient(tensor: torch.Tensor) -> Numbers:
    """`GRADIENT` of a gradient.

    Most rows of a table of words have none: where none is seen, all is read.
    """
    described = of_weights(tensor)
    if isinstance(described, torch.Tensor) or described[1] > 0 or tensor.numel() <= MOST_ELEMENTS:
        return described
    return _of_weights(few(tensor, tensor.numel()))


def of_weights(tensor: torch.Tensor) -> Numbers:
    """`GRADIENT` of weights or of their update."""
    return _of_weights(few(tensor))


def _of_weights(flat: torch.Tensor) -> Numbers:
    if flat.device.type == "cpu":
        largest = number_in(torch.linalg.vector_norm(flat, float("inf"))) if flat.numel() else 0.0
        if largest == 0:
            return [0.0, 0.0, 1.0, 0.0]
        # The square of a small number is nothing in single precision, that of a large one infinite.
        if 1e-12 < largest < 1e12:
            rms = number_in(torch.linalg.vector_norm(flat)) / sqrt(flat.numel())
            return [rms, largest, _zeros(flat), 0.0]
    finite = torch.isfinite(flat)
    clean = torch.where(finite, flat, torch.zeros_like(flat))
    scale = clean.abs().max().clamp(min=1e-37)
    return torch.stack(
        [
            (clean / scale).pow(2).mean().sqrt() * scale,
            clean.abs().max(),
            (flat == 0).float().mean(),
            1 - finite.float().mean(),
        ]
    )
