"""A plan: the layers of a network and the steps of its forward pass, with all shapes.

`program` writes a plan as code. Shapes are valid for every
combination: the larger area is pooled to the smaller one, and a sum uses a 1 by 1 convolution if channels differ (as
shortcuts do in He et al., CVPR 2016). An even kernel adds one pixel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochzero.errors import InputError
from epochzero_models.generate.architecture import Architecture, Cell, Convolution

Shape = tuple[int, int, int]
"""Channels, height and width."""
FIRST_WIDTH = 16
"""Number of channels to which the first block's are relative."""
MOST_WIDTH = 1024
MOST_PARAMETERS = 20_000_000
"""FeatureNET's limit."""


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """A module of ``torch.nn``.

    Attributes:
        name: of the network's attribute.
        module: the class.
        arguments: of its constructor, by name.
    """

    name: str
    module: str
    arguments: Mapping[str, Any]

    @property
    def parameters(self) -> int:
        """Number of trainable parameters."""
        arguments = self.arguments
        match self.module:
            case "Conv2d":
                height, width = arguments["kernel_size"]
                weights = arguments["in_channels"] // arguments.get("groups", 1) * height * width
                return int(arguments["out_channels"] * (weights + 1))
            case "BatchNorm2d":
                return int(2 * arguments["num_features"])
            case "Linear":
                return int((arguments["in_features"] + 1) * arguments["out_features"])
            case _:
                return 0


@dataclass(frozen=True, slots=True)
class Step:
    """One value of the forward pass.

    Attributes:
        output: number of the value; 0 is the network's input.
        operation: name of a layer, or ``relu``, ``sum``, ``concat`` or ``flatten``.
        inputs: numbers of its input values.
        place: block and cell, for people.
    """

    output: int
    operation: str
    inputs: tuple[int, ...]
    place: str


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """A network.

    Attributes:
        shape: of an input.
        classes: number of classes.
        layers: in the order of their use.
        steps: in order; the last one returns the scores.
    """

    shape: Shape
    classes: int
    layers: tuple[LayerPlan, ...]
    steps: tuple[Step, ...]

    @property
    def parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def depth(self) -> int:
        """Largest number of convolutions that an input passes in sequence."""
        convolutions = {layer.name for layer in self.layers if layer.module == "Conv2d"}
        depths = {0: 0}
        for step in self.steps:
            before = max(depths[value] for value in step.inputs)
            depths[step.output] = before + (step.operation in convolutions)
        return depths[self.steps[-1].output]

    def layer(self, name: str) -> LayerPlan | None:
        """Return the layer of that name; None if the operation is not a layer."""
        return next((layer for layer in self.layers if layer.name == name), None)


def plan_of(architecture: Architecture, shape: Shape, classes: int) -> NetworkPlan:
    """Return the network of an architecture, with a linear classifier at its end.

    Args:
        architecture: blocks and cells.
        shape: of an image: channels, height and width.
        classes: at least two.

    Raises:
        InputError: such inputs or classes are not possible.
    """
    if min(shape) < 1 or classes < 2:
        raise InputError(
            f"inputs of shape {shape} and {classes} classes: at least one channel, one pixel and "
            "two classes are required"
        )
    return _Planner(shape, classes).planned(architecture)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the forward pass: its number and shape."""

    number: int
    shape: Shape


class _Planner:
    """Adds layers and steps, cell by cell."""

    def __init__(self, shape: Shape, classes: int) -> None:
        self.shape, self.classes = shape, classes
        self.layers: list[LayerPlan] = []
        self.steps: list[Step] = []
        self.place = ""

    def planned(self, architecture: Architecture) -> NetworkPlan:
        """Return the complete plan."""
        inputs = [_Value(0, self.shape)]
        width = FIRST_WIDTH
        for k, block in enumerate(architecture.blocks, 1):
            width = max(1, min(MOST_WIDTH, round(width * block.features / 100)))
            stride = int(block.stride.partition("x")[0])
            waiting: list[tuple[int, _Value]] = []
            for at, cell in enumerate(block.cells):
                self.place = f"Block {k}, cell {at + 1}"
                # The newest value that is intended for this cell, otherwise the input of the block.
                sources = [value for target, value in reversed(waiting) if target == at] + inputs
                output = self._cell(f"block{k}_cell{at + 1}", cell, sources, width, stride)
                waiting.append((min(at + 1 + cell.passes_over, len(block.cells) - 1), output))
            inputs = [output, inputs[0]]
        return self._classified(inputs[0])

    def _cell(
        self, name: str, cell: Cell, sources: list[_Value], width: int, stride: int
    ) -> _Value:
        first = self._input(f"{name}_input1", cell.input1, sources[0], width, stride)
        first = self._operation(f"{name}_operation1", cell.operation1, first)
        if cell.input2 == "Zeros":
            return first
        source = sources[1] if len(sources) > 1 else sources[0]
        second = self._input(f"{name}_input2", cell.input2, source, width, stride)
        second = self._operation(f"{name}_operation2", cell.operation2, second)
        return self._combined(name, cell.combination, first, second)

    def _input(
        self, name: str, chosen: Convolution | str, source: _Value, width: int, stride: int
    ) -> _Value:
        if isinstance(chosen, str):
            return source
        height, breadth = (int(side) for side in chosen.kernel.split("x"))
        kernel = (height, breadth)
        if chosen.type == "normal":
            output = self._convolution(name, source, width, kernel, stride)
        else:
            channels = source.shape[0]
            output = self._convolution(name, source, channels, kernel, stride, groups=channels)
            if chosen.type == "separable":
                output = self._convolution(f"{name}_pointwise", output, width, (1, 1))
        return self._step("relu", output.shape, output)

    def _convolution(
        self, name: str, source: _Value, width: int, kernel: tuple[int, int], stride: int = 1,
        groups: int = 1,
    ) -> _Value:  # fmt: skip
        channels, *area = source.shape
        padding = tuple(side // 2 for side in kernel)
        arguments: dict[str, Any] = {
            "in_channels": channels, "out_channels": width, "kernel_size": kernel,
            "stride": stride, "padding": padding,
        }  # fmt: skip
        area = [
            (length + 2 * around - side) // stride + 1
            for length, around, side in zip(area, padding, kernel, strict=True)
        ]
        if groups > 1:
            arguments["groups"] = groups
        return self._layer(name, "Conv2d", arguments, (width, area[0], area[1]), source)

    def _operation(self, name: str, operation: str, source: _Value) -> _Value:
        if operation == "BatchNormalization":
            features = {"num_features": source.shape[0]}
            return self._layer(name, "BatchNorm2d", features, source.shape, source)
        rate = int(operation.removeprefix("Dropout") or 0) if operation != "Void" else 0
        if rate:
            return self._layer(name, "Dropout", {"p": rate / 10}, source.shape, source)
        return source

    def _combined(self, name: str, combination: str, first: _Value, second: _Value) -> _Value:
        area = (min(first.shape[1], second.shape[1]), min(first.shape[2], second.shape[2]))
        first = self._pooled(f"{name}_pool1", first, area)
        second = self._pooled(f"{name}_pool2", second, area)
        if combination == "Concat":
            channels = first.shape[0] + second.shape[0]
            return self._step("concat", (channels, *area), first, second)
        if first.shape[0] != second.shape[0]:
            second = self._convolution(f"{name}_project", second, first.shape[0], (1, 1))
        return self._step("sum", first.shape, first, second)

    def _pooled(self, name: str, source: _Value, area: tuple[int, int]) -> _Value:
        if source.shape[1:] == area:
            return source
        shape = (source.shape[0], *area)
        return self._layer(name, "AdaptiveMaxPool2d", {"output_size": area}, shape, source)

    def _classified(self, source: _Value) -> NetworkPlan:
        self.place = "Classifier"
        channels, height, width = source.shape
        features = channels * height * width
        flat = self._step("flatten", (features, 1, 1), source)
        arguments = {"in_features": features, "out_features": self.classes}
        self._layer("head", "Linear", arguments, (self.classes, 1, 1), flat)
        return self._without_unused()

    def _layer(
        self, name: str, module: str, arguments: Mapping[str, Any], shape: Shape, source: _Value
    ) -> _Value:
        self.layers.append(LayerPlan(name, module, arguments))
        return self._step(name, shape, source)

    def _step(self, operation: str, shape: Shape, *inputs: _Value) -> _Value:
        value = _Value(len(self.steps) + 1, shape)
        numbers = tuple(argument.number for argument in inputs)
        self.steps.append(Step(value.number, operation, numbers, self.place))
        return value

    def _without_unused(self) -> NetworkPlan:
        """Remove unused values: outputs that their cells pass over, and what only these need."""
        used = {self.steps[-1].output}
        for step in reversed(self.steps):
            if step.output in used:
                used |= set(step.inputs)
        in_use = [step for step in self.steps if step.output in used]
        numbers = {0: 0} | {step.output: number for number, step in enumerate(in_use, 1)}
        steps = tuple(
            Step(numbers[s.output], s.operation, tuple(numbers[n] for n in s.inputs), s.place)
            for s in in_use
        )
        named = {step.operation for step in steps}
        layers = tuple(layer for layer in self.layers if layer.name in named)
        return NetworkPlan(self.shape, self.classes, layers, steps)
