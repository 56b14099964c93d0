"""Measures how much recorded inputs explain about their targets, without the model: as recorded, with corrections, and by chance.

A kernel ridge regression predicts each target from the other examples. The share that it explains of permuted targets is
chance. If a correction raises the share from chance to clearly above chance, this is a fact even in the first batches, when
a model predicts hardly anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d

MOST, FEWEST = 256, 128
"""Examples that are measured."""
_OF_BATCH, _COLUMNS, _SIDE, _CHANNELS, _CLASSES = 64, 256, 16, 4, 32
_PERMUTATIONS, _LARGEST = 16, 1e9
_RIDGE, _TINY = 0.075, 1e-6
_SHIFTS = (1, -1, 2, -2, 3, -3)
_MARGIN = 0.2
"""By which the correlation of a mask with what is predicted from its image must grow to count."""


class Sample:
    """Examples of the training with their targets, as small copies, each example once."""

    def __init__(self) -> None:
        self.count = 0
        self.batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._given: tuple[int, torch.Tensor, torch.Tensor] | None = None
        self._known: set[bytes] = set()

    def given(self, tensors: Sequence[torch.Tensor]) -> None:
        """A model is called with these."""
        self._given = None
        rows = [t.detach() for t in tensors if t.dim() and len(t) == len(tensors[0])]
        if self.count < MOST and rows and not any(t.is_complex() for t in rows):
            self._given = (
                len(rows[0]),
                *_reduced([t if t.dim() > 1 else t[:, None] for t in rows]),
            )

    def belongs(self, target: torch.Tensor) -> bool:
        """A loss is computed from this target; whether it was added."""
        given, self._given = self._given, None
        if given is None or target.dim() == 0 or len(target) != given[0]:
            return False
        target = target.detach()[:_OF_BATCH].float()
        target = (_places(target) if target.dim() > 2 else target.reshape(len(target), -1)).cpu()
        batch = (*given[1:], target)
        # An example that comes again, as in the next epoch, would tell its own target.
        rows = zip(*(of.flatten(1).unbind() for of in given[1:]), strict=True)
        prints = {one.numpy().tobytes() + other.numpy().tobytes() for one, other in rows}
        is_new = target.dim() == 3 or len(prints - self._known) >= max(2, 0.9 * len(target))
        self._known |= prints
        alike = not self.batches or _shapes(batch) == _shapes(self.batches[0])
        if is_new and alike and (target.dim() == 3 or 0 < target.shape[1] <= _SIDE):
            self.batches.append(batch)
            self.count += len(target)
            return True
        return False

    @property
    def images(self) -> torch.Tensor:
        """The first input of numbers."""
        return torch.cat([main for main, _, _ in self.batches])

    @property
    def target(self) -> torch.Tensor:
        """All targets."""
        return torch.cat([target for _, _, target in self.batches])

    @property
    def features(self) -> torch.Tensor:
        """The inputs as a table."""
        rest = torch.cat([rest for _, rest, _ in self.batches])
        return torch.cat([self.images.flatten(1), rest], 1)


def _shapes(batch: Sequence[torch.Tensor]) -> list[torch.Size]:
    return [of.shape[1:] for of in batch]


def _reduced(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The first tensor of numbers, smaller; all other columns, of symbols how often each occurs and where."""
    count = min(len(tensors[0]), _OF_BATCH)
    main, rest = torch.empty(count, 0), [torch.empty(count, 0)]
    for tensor in tensors:
        value = tensor[:_OF_BATCH]
        if not value.is_floating_point():
            rest.append(_symbols(value.flatten(1)[:, :_COLUMNS].cpu().long()))
            continue
        value = torch.nan_to_num(value.float()).clamp(-_LARGEST, _LARGEST)
        if main.numel() or value.dim() > 4:
            value = value.flatten(1)
        elif value.dim() == 4:
            height, width = (min(side, _SIDE) for side in value.shape[2:])
            value = adaptive_avg_pool2d(value[:, :_CHANNELS], (height, width))
        value = value[:, :: -(-value.shape[1] // _COLUMNS)].cpu().clone()
        if main.numel():
            rest.append(value)
        else:
            main = value
    return main, torch.cat(rest, 1)


def _symbols(rows: torch.Tensor) -> torch.Tensor:
    counts = torch.zeros(len(rows), 2 * _COLUMNS)
    ones = torch.ones_like(rows, dtype=torch.float32)
    counts.scatter_add_(1, rows % _COLUMNS, ones)
    placed = rows * 31 + torch.arange(rows.shape[1]) * 101
    return counts.scatter_add_(1, _COLUMNS + placed % _COLUMNS, ones)


def _places(target: torch.Tensor) -> torch.Tensor:
    """A map of what is not the background, smaller."""
    value = target.squeeze(1) if target.dim() == 4 and target.shape[1] == 1 else target
    if value.dim() != 3:
        return torch.empty(len(value), 0)
    whole = bool((value == value.round()).all())
    return (value != value.flatten().mode().values).float() if whole else value


def facts(sample: Sample) -> dict[str, Any]:
    """Return the explained share of targets, as they are and shifted, each as ``[share, standard deviations above chance]``; or how maps fit."""
    if sample.target.dim() == 3:
        return _of_places(sample)
    target = _codes(sample.target)
    shifts = dict(_shifts(target, [len(of) for *_, of in sample.batches]))
    own, *shifted = _explained(sample.features, target, *shifts.values())
    return {
        "count": len(target),
        "trained": own,
        "shifted": dict(zip(shifts, shifted, strict=True)),
    }


def _codes(target: torch.Tensor) -> torch.Tensor:
    """Targets as columns: one for each class, or numbers."""
    target = torch.nan_to_num(target)
    classes = target.unique()  # type: ignore[no-untyped-call]
    is_code = target.shape[1] == 1 and bool((classes == classes.round()).all())
    return (target == classes).float() if is_code and len(classes) <= _CLASSES else target


def _explained(inputs: torch.Tensor, *targets: torch.Tensor) -> list[list[float]]:
    """What other examples explain of each target, and how many standard deviations that is above chance.

    The regression has a linear and a local kernel; its error without each example is known at once.
    """
    size, spread = len(inputs), inputs.std(0)
    spread = torch.where(spread < _TINY, torch.ones(()), spread)
    scaled = ((inputs - inputs.mean(0)) / spread).clamp(-10, 10)
    distances = torch.cdist(scaled, scaled)
    width = distances.median().clamp(min=_TINY)
    kernel = scaled @ scaled.T / scaled.shape[1] + torch.exp(-((distances / width) ** 2))
    inverse = torch.linalg.inv(kernel + _RIDGE * size**0.5 * torch.eye(size))
    left_out = inverse.diagonal()[:, None]
    draw = torch.Generator().manual_seed(0)
    orders = [torch.randperm(size, generator=draw) for _ in range(_PERMUTATIONS)]
    shares = [
        _share((inverse @ (of - of.mean(0))) / left_out, of)
        for of in (*targets, *(targets[0][order] for order in orders))
    ]
    null = torch.tensor(shares[len(targets) :])
    usual = max(float(null.std()), _TINY)
    return [[of, (of - float(null.mean())) / usual] for of in shares[: len(targets)]]


def _share(error: torch.Tensor, target: torch.Tensor) -> float:
    return 1 - float(
        error.square().sum() / (target - target.mean(0)).square().sum().clamp(min=_TINY)
    )


def _shifts(target: torch.Tensor, lengths: Sequence[int]) -> Iterator[tuple[str, torch.Tensor]]:
    parts = torch.split(target, list(lengths))
    for by in _SHIFTS:
        yield str(by), torch.cat([part.roll(by, 0) for part in parts])
    yield "reversed", torch.cat([part.flip(0) for part in parts])
    if len(set(lengths)) == 1:
        yield "batch before", target.roll(lengths[0], 0)
        yield "batch after", target.roll(-lengths[0], 0)


# -- Images and what belongs to their places ----------------------------------------------------------

_TURNS: Mapping[str, Any] = {
    "flipped left to right": lambda v: v.flip(-1),
    "flipped upside down": lambda v: v.flip(-2),
    "turned by 180 degrees": lambda v: v.flip(-1, -2),
    "transposed": lambda v: v.transpose(-1, -2),
    "turned left": lambda v: v.transpose(-1, -2).flip(-2),
    "turned right": lambda v: v.transpose(-1, -2).flip(-1),
    "transposed along the other diagonal": lambda v: v.transpose(-1, -2).flip(-1, -2),
}


def _of_places(sample: Sample) -> dict[str, Any]:
    """The share of examples whose target fits far better when it is flipped or turned, and that of targets of other examples."""
    image, target = sample.images, sample.target
    if image.dim() != 4 or bool((target == target[0, 0, 0]).all()):
        return {}
    height, width = image.shape[2:]
    target = adaptive_avg_pool2d(target[:, None], (height, width))[:, 0]
    turns = {n: of for n, of in _TURNS.items() if of(target).shape == target.shape}
    # A few numbers for each place, the same for all places, cannot fit single examples.
    table = _neighborhoods(image).flatten(0, 2)
    square = table.T @ table + torch.eye(table.shape[1])
    weights = torch.linalg.solve(square, table.T @ (target - target.mean()).flatten())
    predicted = (table @ weights).reshape(target.shape)
    own = _correlation(predicted, target)
    fits = torch.stack([_correlation(predicted, of(target)) for of in turns.values()])
    others = torch.stack([_correlation(predicted, of(target.roll(1, 0))) for of in turns.values()])
    (best, at), chance = fits.max(0), others.max(0).values
    better = best > torch.maximum(own, chance) + _MARGIN
    by_chance = chance > torch.maximum(own, best) + _MARGIN
    names = [list(turns)[int(n)] for n in at[better]]
    return {
        "count": len(target),
        "as_is": float(own.median()),
        "turned": float(better.float().mean()),
        "by_chance": float(by_chance.float().mean()),
        "turns": sorted(set(names), key=names.count, reverse=True)[:2],
    }


def _neighborhoods(image: torch.Tensor) -> torch.Tensor:
    """For each place the means around it, at three scales, and how much they differ."""
    parts = [image, avg_pool2d(image, 3, 1, 1), avg_pool2d(image, 7, 1, 3, count_include_pad=False)]
    parts += [(parts[1] - parts[2]).abs()]
    table = torch.cat(parts, 1).permute(0, 2, 3, 1)
    mean = table.mean((0, 1, 2))
    return (table - mean) / table.std((0, 1, 2)).clamp(min=_TINY)


def _correlation(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of each example."""
    one, other = (of.flatten(1) - of.flatten(1).mean(1, keepdim=True) for of in (one, other))
    return torch.cosine_similarity(one, other, 1)
