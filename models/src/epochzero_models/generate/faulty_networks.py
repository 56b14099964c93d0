"""Networks that must fail in a known way: one feature of a plan is changed so that shapes or labels do not match.

They are used to measure checks of tensor shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from epochzero_models.generate.plan import LayerPlan, NetworkPlan, Step
from epochzero_models.generate.program import LOSS_LINE, line_of


@dataclass(frozen=True, slots=True)
class Broken:
    """A plan with one mistake.

    Attributes:
        plan: the plan.
        mistake: one of `BREAKS`.
        layer: the layer with the mistake.
        change: the argument with its old and new value, for people.
        line: line of its `program` that fails.
    """

    plan: NetworkPlan
    mistake: str
    layer: str
    change: str
    line: str


def break_one(plan: NetworkPlan, seed: int, mistake: str | None = None) -> Broken:
    """Change one feature of a plan so that training its network must fail.

    Args:
        plan: a valid network.
        seed: of the choice of mistake and layer.
        mistake: one of `BREAKS`; None for any that is possible.

    Raises:
        ValueError: the mistake is not possible in this plan.
    """
    draw = np.random.default_rng(seed)
    names = [mistake] if mistake else list(BREAKS)
    possible = {name: places for name in names if (places := list(BREAKS[name](plan)))}
    if not possible:
        raise ValueError(f"the mistake {mistake!r} is not possible in this plan")
    chosen = list(possible)[int(draw.integers(len(possible)))]
    places = possible[chosen]
    place = places[int(draw.integers(len(places)))]
    return _broken(plan, chosen, place)


@dataclass(frozen=True, slots=True)
class _Place:
    """An argument of a layer with another value, and the line that then fails."""

    layer: LayerPlan
    argument: str
    value: int
    line: str


def _broken(plan: NetworkPlan, mistake: str, place: _Place) -> Broken:
    old = place.layer.arguments[place.argument]
    changed = replace(place.layer, arguments={**place.layer.arguments, place.argument: place.value})
    layers = tuple(changed if layer is place.layer else layer for layer in plan.layers)
    change = f"{place.argument} {old} -> {place.value}"
    return Broken(replace(plan, layers=layers), mistake, place.layer.name, change, place.line)


def _one_more(module: str, argument: str) -> Callable[[NetworkPlan], Iterator[_Place]]:
    """Layers that expect one feature more than they receive."""

    def places(plan: NetworkPlan) -> Iterator[_Place]:
        for step, layer in _layers(plan, module):
            if "groups" not in layer.arguments:
                yield _Place(layer, argument, _number(layer, argument) + 1, line_of(plan, step))

    return places


def _unequal_sum(plan: NetworkPlan) -> Iterator[_Place]:
    """Convolutions that give a sum one channel more than its other operand has."""
    makers = {step.output: step for step in plan.steps}
    uses = [number for step in plan.steps for number in step.inputs]
    for step in plan.steps:
        if step.operation != "sum" or step.inputs[0] == step.inputs[1]:
            continue
        for number in step.inputs:
            maker = makers.get(number)
            # Operations that keep the number of channels may be between them.
            while maker and uses.count(maker.output) == 1 and _keeps_channels(plan, maker):
                maker = makers.get(maker.inputs[0])
            layer = maker and plan.layer(maker.operation)
            if not maker or uses.count(maker.output) != 1 or not layer:
                continue
            if layer.module != "Conv2d" or "groups" in layer.arguments:
                continue
            channels = _number(layer, "out_channels")
            # A single channel is broadcast.
            if channels > 1:
                yield _Place(layer, "out_channels", channels + 1, line_of(plan, step))


def _one_class_less(plan: NetworkPlan) -> Iterator[_Place]:
    """A classifier with one class fewer than the labels."""
    for _, layer in _layers(plan, "Linear"):
        yield _Place(layer, "out_features", plan.classes - 1, LOSS_LINE)


def _keeps_channels(plan: NetworkPlan, step: Step) -> bool:
    layer = plan.layer(step.operation)
    return step.operation == "relu" or (
        layer is not None and layer.module in ("Dropout", "AdaptiveMaxPool2d")
    )


def _layers(plan: NetworkPlan, module: str) -> Iterator[tuple[Step, LayerPlan]]:
    for step in plan.steps:
        layer = plan.layer(step.operation)
        if layer and layer.module == module:
            yield step, layer


def _number(layer: LayerPlan, argument: str) -> int:
    value = layer.arguments[argument]
    assert isinstance(value, int)
    return value


BREAKS: Mapping[str, Callable[[NetworkPlan], Iterator[_Place]]] = {
    "linear layer expects one feature more": _one_more("Linear", "in_features"),
    "convolution expects one channel more": _one_more("Conv2d", "in_channels"),
    "normalization expects one channel more": _one_more("BatchNorm2d", "num_features"),
    "sum of different channels": _unequal_sum,
    "classifier lacks a class": _one_class_less,
}
"""Mistakes, with the places in a plan where they are possible."""
