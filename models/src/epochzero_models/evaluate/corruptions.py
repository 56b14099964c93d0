"""Simple corruptions of inputs in three severities.

Strengths are relative to the range of the inputs (images) or to each column's standard deviation (tables), so that
they do not depend on the scaling of the inputs. Names are those of Hendrycks and Dietterich (ICLR 2019) where
they exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Generator, Tensor
from torch.nn import functional

SEVERITIES = (1, 2, 3)
_CHANNELS = (1, 3, 4)
Corruption = Callable[[Tensor, int, Generator], Tensor]
"""Inputs, severity and random numbers -> changed inputs of the same shape."""


def corrupted(inputs: Tensor, seed: int) -> Iterator[tuple[str, int, Tensor]]:
    """Yield name, severity and corrupted inputs, for all corruptions that apply.

    Args:
        inputs: shape (n, channels, height, width) or, as in Keras, (n, height, width, channels) for images; otherwise
            (n, ...); real-valued.
        seed: of the random numbers.
    """
    are_images = inputs.ndim == 4
    last = are_images and inputs.shape[3] in _CHANNELS and inputs.shape[1] not in _CHANNELS
    ordered = inputs.movedim(3, 1) if last else inputs
    for name, change in (_IMAGES if are_images else _NUMBERS).items():
        for severity in SEVERITIES:
            changed = change(ordered, severity, Generator().manual_seed(seed))
            yield name, severity, changed.movedim(1, 3).contiguous() if last else changed


def _range(images: Tensor) -> tuple[float, float]:
    return float(images.min()), float(images.max())


def _noise(images: Tensor, severity: int, draw: Generator) -> Tensor:
    low, high = _range(images)
    strength = (0.05, 0.1, 0.2)[severity - 1] * (high - low)
    return (images + strength * torch.randn(images.shape, generator=draw)).clamp(low, high)


def _blur(images: Tensor, severity: int, draw: Generator) -> Tensor:
    side = 2 * severity + 1
    weights = torch.full((images.shape[1], 1, side, side), 1 / side**2)
    padded = functional.pad(images, (severity,) * 4, mode="replicate")
    return functional.conv2d(padded, weights, groups=images.shape[1])


def _brightness(images: Tensor, severity: int, draw: Generator) -> Tensor:
    low, high = _range(images)
    return (images + 0.1 * severity * (high - low)).clamp(low, high)


def _contrast(images: Tensor, severity: int, draw: Generator) -> Tensor:
    middle = images.mean(dim=(1, 2, 3), keepdim=True)
    return middle + (0.75, 0.5, 0.25)[severity - 1] * (images - middle)


def _occlusion(images: Tensor, severity: int, draw: Generator) -> Tensor:
    """Cover a square of a fifth, a third or half of each side with the image's mean."""
    height, width = images.shape[2:]
    share = (0.2, 0.33, 0.5)[severity - 1]
    high, wide = max(1, round(share * height)), max(1, round(share * width))
    top = torch.randint(height - high + 1, (len(images), 1, 1), generator=draw)
    left = torch.randint(width - wide + 1, (len(images), 1, 1), generator=draw)
    down, across = torch.arange(height)[None, :, None], torch.arange(width)[None, None, :]
    hidden = (down >= top) & (down < top + high) & (across >= left) & (across < left + wide)
    return torch.where(hidden[:, None], images.mean(dim=(2, 3), keepdim=True), images)


def _column_noise(rows: Tensor, severity: int, draw: Generator) -> Tensor:
    strength = (0.1, 0.25, 0.5)[severity - 1] * rows.std(dim=0, correction=0)
    return rows + strength * torch.randn(rows.shape, generator=draw)


def _missing(rows: Tensor, severity: int, draw: Generator) -> Tensor:
    """Replace some values by the mean of their column, as an imputing pipeline does."""
    gone = torch.rand(rows.shape, generator=draw) < (0.05, 0.1, 0.25)[severity - 1]
    return torch.where(gone, rows.mean(dim=0), rows)


def _shift(rows: Tensor, severity: int, draw: Generator) -> Tensor:
    return rows + (0.1, 0.25, 0.5)[severity - 1] * rows.std(dim=0, correction=0)


_IMAGES: Mapping[str, Corruption] = {
    "gaussian noise": _noise,
    "blur": _blur,
    "brightness": _brightness,
    "contrast": _contrast,
    "occlusion": _occlusion,
}
_NUMBERS: Mapping[str, Corruption] = {
    "gaussian noise": _column_noise,
    "missing values": _missing,
    "shift": _shift,
}
