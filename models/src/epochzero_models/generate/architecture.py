"""An architecture: blocks of cells, as read from a product of the feature model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from epochzero_models.generate.feature_model import Product


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of a cell's input, followed by ReLU.

    Attributes:
        kernel: such as ``3x1``, height by width.
        type: normal, separable or depthwise.
    """

    kernel: str
    type: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Two inputs, an operation on each, and their combination.

    Attributes:
        input1, input2: a convolution, ``Identity``, or ``Zeros`` for none.
        operation1, operation2: ``Void``, ``BatchNormalization``, or ``Dropout`` with its rate in tenths.
        combination: ``Concat`` or ``Sum``.
        passes_over: number of cells between this one and the one that uses its output.
    """

    input1: Convolution | str
    input2: Convolution | str
    operation1: str
    operation2: str
    combination: str
    passes_over: int = 0


@dataclass(frozen=True, slots=True)
class CellBlock:
    """Cells with the same stride and width.

    Attributes:
        stride: of all convolutions, ``1x1`` or ``2x2``.
        features: number of channels, in percent of the previous block's.
    """

    stride: str
    features: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Architecture:
    """Blocks with cells, from the input on; none for a linear classifier."""

    blocks: tuple[CellBlock, ...]


def architecture_of(product: Product) -> Architecture:
    """Return the architecture of a product; blocks and elements without cells are skipped."""
    blocks: list[CellBlock] = []
    for block in _numbered(product, "Block"):
        cells = [
            _cell(product, f"{element}_Cell")
            for element in _numbered(product, f"{block}_Element")
            if f"{element}_Cell" in product
        ]
        if cells:
            # The output of the last cell is the block's output, whatever cell it was intended for.
            cells[-1] = replace(cells[-1], passes_over=0)
            features = int(_chosen(product, f"{block}_features"))
            blocks.append(CellBlock(_chosen(product, f"{block}_stride"), features, tuple(cells)))
    return Architecture(tuple(blocks))


def _numbered(product: Product, prefix: str) -> Iterator[str]:
    number = 1
    while f"{prefix}{number}" in product:
        yield f"{prefix}{number}"
        number += 1


def _chosen(product: Product, parent: str) -> str:
    """Return the one selected child of a group."""
    start = f"{parent}_"
    return next(
        name.removeprefix(start)
        for name in product
        if name.startswith(start) and "_" not in name.removeprefix(start)
    )


def _cell(product: Product, name: str) -> Cell:
    index = f"{name}_Output_Cell"
    return Cell(
        _input(product, f"{name}_Input1"),
        _input(product, f"{name}_Input2"),
        _operation(product, f"{name}_Operation1"),
        _operation(product, f"{name}_Operation2"),
        _chosen(product, f"{name}_Combination"),
        int(_chosen(product, f"{index}_relativeCellIndex")) if index in product else 0,
    )


def _input(product: Product, name: str) -> Convolution | str:
    kind = _chosen(product, name)
    if kind != "Convolution":
        return kind
    kernel = _chosen(product, f"{name}_Convolution_kernel")
    return Convolution(kernel, _chosen(product, f"{name}_Convolution_type"))


def _operation(product: Product, name: str) -> str:
    kind = _chosen(product, name)
    return kind + (_chosen(product, f"{name}_Dropout_value") if kind == "Dropout" else "")
