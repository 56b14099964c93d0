"""How much the recorded inputs tell about their targets, without the model: as recorded, with each correction, and by chance.

A kernel ridge regression predicts each target from the other examples. What it explains of targets that are permuted is
chance. A correction that raises this from chance to clearly above chance is a fact from the first batches on, when a model
still predicts hardly anything. The regression of the training, applied to evaluations, shows whether both agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d

MOST, FEWEST = 256, 128
"""Examples of each split."""
_OF_BATCH, _COLUMNS, _SIDE, _CHANNELS, _CLASSES, _TABLE = 64, 256, 16, 4, 32, 32
_PERMUTATIONS, _LARGEST = 16, 1e9
_RIDGE, _TINY = 0.075, 1e-6
_SHIFTS = (1, -1, 2, -2, 3, -3)
_MARGIN = 0.2
"""By which the correlation of a mask with what is predicted from its image must grow to count."""


class Sample:
    """Examples of one split with their targets: small copies, as many as are needed once."""

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

    def features(self, correct: Any = None) -> torch.Tensor:
        """The inputs as a table, after a correction of the first one of numbers."""
        first = correct(self.images) if correct else self.images
        return torch.cat([first.flatten(1), torch.cat([rest for _, rest, _ in self.batches])], 1)


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


def facts(trained: Sample, evaluated: Sample) -> dict[str, Any]:
    """How much is explained, as ``[share, standard deviations above chance]``, of the training, of evaluations, and from one to the other."""
    if trained.target.dim() == 3:
        return _of_places(trained)
    # Evaluations of other inputs, or by another loss, are not compared.
    compares = evaluated.count >= FEWEST and _shapes(evaluated.batches[0]) == _shapes(
        trained.batches[0]
    )
    target, other = _codes(trained.target, evaluated.target if compares else trained.target[:0])
    mapping = _Regression(trained.features(), target)
    shifts = dict(_shifts(target, [len(of) for *_, of in trained.batches]))
    own, *shifted = mapping.explained(target, *shifts.values())
    found = {
        "count": len(target),
        "trained": own,
        "shifted": dict(zip(shifts, shifted, strict=True)),
    }
    if not len(other):
        return found
    inputs = evaluated.features()
    tested = _Regression(inputs, other)
    return found | {
        "evaluated": tested.explained(other)[0],
        "across": mapping.share(inputs, other),
        "back": tested.share(mapping.inputs, target),
        "apart": float(((inputs - mapping.mean) / mapping.spread).mean(0).abs().mean()),
        "corrected": dict(_corrections(mapping, evaluated, inputs, target, other)),
    }


def _codes(target: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both targets as columns: one for each class, or numbers of the same size."""
    both = torch.nan_to_num(torch.cat([target, other]))
    classes = both.unique()  # type: ignore[no-untyped-call]
    is_code = both.shape[1] == 1 and bool((classes == classes.round()).all())
    both = (both == classes).float() if is_code and len(classes) <= _CLASSES else both
    return both[: len(target)], both[len(target) :]


class _Regression:
    """A regression with a linear and a local kernel, of which the error without each example is known at once."""

    def __init__(self, inputs: torch.Tensor, target: torch.Tensor) -> None:
        self.inputs, self.mean, self.spread = inputs, inputs.mean(0), inputs.std(0)
        self.spread = torch.where(self.spread < _TINY, torch.ones(()), self.spread)
        self._known = self._scaled(inputs)
        self._width = torch.cdist(self._known, self._known).median().clamp(min=_TINY)
        size = len(inputs)
        self._inverse = torch.linalg.inv(
            self._kernel(self._known) + _RIDGE * size**0.5 * torch.eye(size)
        )
        self._left_out = self._inverse.diagonal()[:, None]
        self._center = target.mean(0)
        self._weights = self._inverse @ (target - self._center)

    def _scaled(self, inputs: torch.Tensor) -> torch.Tensor:
        return ((inputs - self.mean) / self.spread).clamp(-10, 10)

    def _kernel(self, inputs: torch.Tensor) -> torch.Tensor:
        linear = inputs @ self._known.T / inputs.shape[1]
        return linear + torch.exp(-((torch.cdist(inputs, self._known) / self._width) ** 2))

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Targets of other examples."""
        found: torch.Tensor = self._center + self._kernel(self._scaled(inputs)) @ self._weights
        return found

    def share(self, inputs: torch.Tensor, target: torch.Tensor) -> float:
        """What is explained of the targets of other examples."""
        return _share(self.predict(inputs) - target, target)

    def explained(self, *targets: torch.Tensor) -> list[list[float]]:
        """What other examples explain of each target, and how many standard deviations that is above chance."""
        draw = torch.Generator().manual_seed(0)
        orders = [torch.randperm(len(self.inputs), generator=draw) for _ in range(_PERMUTATIONS)]
        shares = [
            _share((self._inverse @ (of - of.mean(0))) / self._left_out, of)
            for of in (*targets, *(targets[0][order] for order in orders))
        ]
        null = torch.tensor(shares[len(targets) :])
        spread = max(float(null.std()), _TINY)
        return [[of, (of - float(null.mean())) / spread] for of in shares[: len(targets)]]


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


# -- Between training and evaluation -----------------------------------------------------------------


def _corrections(
    mapping: _Regression,
    evaluated: Sample,
    inputs: torch.Tensor,
    target: torch.Tensor,
    other: torch.Tensor,
) -> Iterator[tuple[str, float]]:
    """What the regression of the training explains of corrected evaluations; what is chosen by one half is tested on the other."""
    images = evaluated.images
    for name, correct in _OF_IMAGES.items() if images.dim() == 4 else ():
        if correct(images).shape == images.shape:
            yield name, mapping.share(evaluated.features(correct), other)
    own = (inputs - inputs.mean(0)) / inputs.std(0).clamp(min=_TINY)
    yield "scaled as the training", mapping.share(own * mapping.spread + mapping.mean, other)
    half = len(other) // 2
    if other.shape[1] > 1:
        found = mapping.predict(inputs)
        order = _assigned(other[:half].T @ (found[:half] - found[:half].mean(0)))
        yield "other codes of classes", _share(found[half:][:, order] - other[half:], other[half:])
    if images.dim() == 2 < inputs.shape[1] == images.shape[1] <= _TABLE:
        known = _columns(mapping.inputs, mapping, target)
        far = torch.cdist(known, _columns(inputs[:half], mapping, other[:half]))
        yield (
            "another order of columns",
            mapping.share(inputs[half:][:, _assigned(-far)], other[half:]),
        )


def _columns(inputs: torch.Tensor, mapping: _Regression, target: torch.Tensor) -> torch.Tensor:
    """What is known of each column: how it varies with the target, and its mean and spread in those of the training."""
    scaled = (inputs - inputs.mean(0)) / inputs.std(0).clamp(min=_TINY)
    varies = scaled.T @ (target - target.mean(0)) / len(inputs)
    moments = torch.stack([inputs.mean(0), inputs.std(0).clamp(min=_TINY).log()], 1)
    usual = torch.stack([mapping.mean, mapping.spread.log()], 1).std(0).clamp(min=0.1)
    return torch.cat([varies / varies.std().clamp(min=_TINY), moments / usual], 1)


def _assigned(alike: torch.Tensor) -> list[int]:
    """For each row another column, the most alike pairs first."""
    alike, found = alike.clone(), [0] * len(alike)
    for _ in found:
        row, column = divmod(int(alike.argmax()), alike.shape[1])
        found[row] = column
        alike[row], alike[:, column] = float("-inf"), float("-inf")
    return found


_TURNS: Mapping[str, Any] = {
    "flipped left to right": lambda v: v.flip(-1),
    "flipped upside down": lambda v: v.flip(-2),
    "turned by 180 degrees": lambda v: v.flip(-1, -2),
    "transposed": lambda v: v.transpose(-1, -2),
    "turned left": lambda v: v.transpose(-1, -2).flip(-2),
    "turned right": lambda v: v.transpose(-1, -2).flip(-1),
    "transposed along the other diagonal": lambda v: v.transpose(-1, -2).flip(-1, -2),
}
_OF_IMAGES: Mapping[str, Any] = {"channels in reverse": lambda v: v.flip(1), **_TURNS}


# -- Images and what belongs to their places ----------------------------------------------------------


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
