"""How the target of a loss relates to the inputs and the output: numbers that hold in each iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch

from epochzero.run.watch.child.attention import padding
from epochzero.run.watch.child.origin import reaches
from epochzero.run.watch.child.statistics import number_in

LAGS = (-1, 0, 1, 2)
"""Positions by which a target may be ahead of its input; 1 is a language model's."""
_MOST_ROWS, _MOST_POSITIONS = 64, 512
_MOST_PAIRS = 8192
_FEWEST = 12
"""Examples whose targets may be in their inputs: fewer agree by chance."""
_IGNORED = -100
_LEAST_LENGTH = 3
_PROBABLE = 1e-3
_MASKED = 1e4
_INDEXED = ("cross_entropy", "nll_loss")
_DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


def relations(
    function: str,
    output: torch.Tensor,
    arguments: Mapping[str, Any],
    inputs: Iterable[torch.Tensor],
    held: Callable[[], Collection[int]],
) -> dict[str, Any]:
    """What holds between the arguments of a loss and the inputs of the model.

    Args:
        function: name of the loss.
        output: its first argument.
        arguments: all of them by name.
        inputs: tensors that the model was called with.
        held: identities of what optimizers change.

    Returns:
        ``lags``: for each of `LAGS` the share of targets that are the input so many positions ahead.
        ``padding``: the share of targets that repeat one value at the ends of rows and are counted.
        ``noise``: correlation of a target like standard noise with the inputs of its shape, and the number of ``pairs``.
        ``ends``: the share of padded texts whose last token is ignored as if it were padding.
        ``excluded``: the share of rows whose target is a class that a mask excludes.
        ``identical``: whether a target of numbers is an input of the model.
        ``given``: whether a number of each input is its target.
        ``differentiable``: whether gradients of a target of numbers reach what an optimizer changes, as those of the output do.
        ``exchanged``: whether gradients reach what an optimizer changes through the target alone, where only the output has logarithms.
        ``blank``: the share of the labels of `ctc_loss` that are its blank.
        ``normalized``: dimensions over which the output, or its exponential, adds up to 1.
    """
    target = arguments.get("target")
    found: dict[str, Any] = {}
    if not isinstance(target, torch.Tensor) or not target.numel():
        return found
    inputs = [value for value in inputs if value is not None]
    found["given"] = _given(target.detach(), inputs)
    if "cross_entropy" in function:
        alone = target.requires_grad and not output.requires_grad
        found["exchanged"] = (alone and reaches(target, held())) or None
    if function in _INDEXED:
        found["normalized"] = _normalized(function, output)
        found["excluded"] = _excluded(output, target)
        if not target.is_floating_point():
            ignored = int(arguments.get("ignore_index", _IGNORED))
            found.update(_sequence(target.detach(), inputs, ignored, arguments))
    elif function in _DISTANCES:
        found.update(_noise(target.detach(), inputs))
        # Arguments of a distance may be exchanged: then it is the output that has a gradient. Gradients of a target network
        # have no effect, since no optimizer changes it.
        both = target.requires_grad and output.requires_grad
        found["differentiable"] = (both and reaches(target, held())) or None
        alike = (v for v in inputs if v.shape == target.shape and v.dtype == target.dtype)
        found["identical"] = any(t is target or torch.equal(t, target) for t in alike) or None
    elif function == "ctc_loss":
        found["blank"] = _blank(target.detach(), arguments)
    return {name: value for name, value in found.items() if value not in (None, [], {})}


def _blank(target: torch.Tensor, arguments: Mapping[str, Any]) -> float:
    """The share of labels that are the blank, without the padding of rows."""
    lengths = arguments.get("target_lengths")
    counted = torch.ones_like(target, dtype=torch.bool)
    if target.dim() == 2 and isinstance(lengths, torch.Tensor):
        positions = torch.arange(target.shape[1], device=target.device)
        counted = positions[None] < lengths.to(target.device)[:, None]
    blank = (target == int(arguments.get("blank", 0))) & counted
    return number_in(blank.sum() / counted.sum().clamp(min=1))


def _sequence(
    target: torch.Tensor, inputs: list[torch.Tensor], ignored: int, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Of targets for each position of a sequence: their lags, and whether padding is counted."""
    found: dict[str, Any] = {}
    tokens = [tensor for tensor in inputs if tensor.dim() == 2 and not tensor.is_floating_point()]
    rows = _rows(target, tokens)
    if rows is None:
        return found
    # Padding has one label. Inputs of the same shape are padded where their targets are: targets alone may end alike, as if sorted.
    alike = [part for t in tokens if (part := t[:_MOST_ROWS, :_MOST_POSITIONS]).shape == rows.shape]
    masks = (padding(tensor) for tensor in alike or [rows])
    padded = next((mask for mask in masks if mask is not None), None)
    values = rows[padded].unique() if padded is not None else rows[:0]  # type: ignore[no-untyped-call]
    counted = rows != ignored
    if padded is not None and values.numel() == 1:
        value = int(number_in(values[0]))
        weight = arguments.get("weight")
        weighted = (
            isinstance(weight, torch.Tensor) and 0 <= value < len(weight) and not weight[value]
        )
        if value != ignored and not weighted and arguments.get("reduction", "mean") == "mean":
            found["padding"] = number_in(padded.float().mean())
        counted = counted & ~padded
    found["ends"] = _ends(rows, ignored, alike)
    shares = [lags for token in tokens if (lags := _lags(rows, token[: len(rows)], counted))]
    if shares:
        found["lags"] = max(shares, key=max)
    return found


def _ends(targets: torch.Tensor, ignored: int, tokens: list[torch.Tensor]) -> float | None:
    """The share of padded texts that end with the token of the padding, as a target of the token before it that is ignored."""
    tokens = [of.long() for of in tokens]
    masks = [of for of in tokens if int(of.max()) == 1 and bool((of.diff() <= 0).all())]
    others = [of for of in tokens if int(of.max()) > 1]
    if not masks or not others:
        return None
    length = masks[0].sum(1)
    some = (length >= _LEAST_LENGTH) & (length < masks[0].shape[1])
    row, last = some.nonzero().squeeze(1), length[some].long() - 1
    if not len(row):
        return None
    end, padded = others[0][row, last], others[0][row, last + 1]
    counted = targets[row, last - 2] != ignored
    lost = (end == padded) & (targets[row, last - 1] == ignored) & counted
    return number_in(lost.float().mean()) or None


def _rows(target: torch.Tensor, tokens: list[torch.Tensor]) -> torch.Tensor | None:
    """The targets as rows of positions, if the loss was given them so or flat."""
    if target.dim() == 2:
        return target[:_MOST_ROWS, :_MOST_POSITIONS]
    if target.dim() == 1 and tokens:
        count = tokens[0].shape[0]
        if count > 1 and target.numel() % count == 0 and target.numel() >= 4 * count:
            return target.reshape(count, -1)[:_MOST_ROWS, :_MOST_POSITIONS]
    return None


def _lags(rows: torch.Tensor, tokens: torch.Tensor, counted: torch.Tensor) -> list[float] | None:
    """For each of `LAGS` how many targets are the input so far ahead."""
    length = min(rows.shape[1], tokens.shape[1])
    if length < 4 or len(tokens) != len(rows):
        return None
    shares = []
    for lag in LAGS:
        first, last = max(0, -lag), min(length, tokens.shape[1] - lag, rows.shape[1])
        valid = counted[:, first:last]
        if last - first < 2 or not bool(valid.any()):
            return None
        equal = rows[:, first:last] == tokens[:, first + lag : last + lag]
        shares.append(number_in((equal & valid).sum() / valid.sum()))
    return shares


def _given(target: torch.Tensor, inputs: list[torch.Tensor]) -> bool | None:
    """Whether the target of each example is a number at the same place of its input."""
    count = target.shape[0] if target.dim() else 0
    if count < _FEWEST or target.numel() != count or target.is_complex():
        return None
    column = target.reshape(count, 1).float()
    if bool((column == column[0]).all()):
        return None
    for value in inputs:
        if value.dim() > 1 and len(value) == count and value.is_floating_point():
            flat = value.detach().reshape(count, -1)[:, :_MOST_PAIRS]
            if flat.shape[1] > 1 and bool((flat.float() == column).all(0).any()):
                return True
    return None


def _noise(target: torch.Tensor, inputs: list[torch.Tensor]) -> dict[str, Any]:
    """How a target that looks like standard noise correlates with the inputs of its shape."""
    alike = [value for value in inputs if value.shape == target.shape and value.is_floating_point()]
    if not alike or target.numel() < 64 or not target.is_floating_point():
        return {}
    flat = _centered(target)
    spread, mean = number_in(flat.std()), number_in(target.float().mean())
    if abs(mean) > 4 / target.numel() ** 0.5 + 0.02 or not 0.85 < spread < 1.15:
        return {}
    found = [number_in((flat * _centered(t)).mean()) / (spread * _spread(t)) for t in alike]
    return {"noise": max(found, key=abs), "pairs": flat.numel()}


def _centered(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().reshape(-1)[:_MOST_PAIRS].float()
    return flat - flat.mean()


def _spread(tensor: torch.Tensor) -> float:
    return max(number_in(_centered(tensor).std()), 1e-12)


def _excluded(output: torch.Tensor, target: torch.Tensor) -> float | None:
    """The share of rows whose class scores less than the best one by more than any score that is not masked."""
    if output.dim() != 2 or target.dim() != 1 or len(output) != len(target):
        return None
    valid = (target >= 0) & (target < output.shape[1])
    scores = output.detach()[valid][:_MOST_PAIRS].float()
    if target.is_floating_point() or not len(scores):
        return None
    own = scores.gather(1, target[valid][:_MOST_PAIRS, None]).squeeze(1)
    return number_in((scores.max(1).values - own > _MASKED).float().mean()) or None


def _normalized(function: str, output: torch.Tensor) -> list[int]:
    """The dimensions over which the output is a probability, or a logarithm of one for `nll_loss`."""
    values = output.detach()
    if values.dim() < 2 or values.numel() > 1 << 20:
        return []
    values = values.float().exp() if function == "nll_loss" else values.float()
    if number_in(values.min()) < 0:
        return []
    return [
        dimension
        for dimension in range(values.dim())
        if values.shape[dimension] > 1
        and number_in((values.sum(dimension) - 1).abs().max()) < _PROBABLE * 5
    ]
