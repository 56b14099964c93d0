"""Faults of the training data and of how they are prepared, as far as the program makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero_models.mutate.operators.base import MutationOperator, injects, with_suffix
from epochzero_models.mutate.operators.training import splits
from epochzero_models.mutate.program import Edit, TrainingProgram, argument

_SCALES = (16, 127.5, 128, 255, 256)
"""Usual divisors of pixels and samples."""


def _scaled(program: TrainingProgram) -> Iterator[ast.BinOp]:
    """Divisions of inputs: by a scale, or by a deviation after subtracting a mean."""
    for node in program.all(ast.BinOp):
        if not isinstance(node.op, ast.Div):
            continue
        by_scale = isinstance(node.right, ast.Constant) and node.right.value in _SCALES
        centered = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Sub)
        if by_scale or centered:
            yield node


@injects("missing_preprocessing_step")
def unprepared(program: TrainingProgram) -> Iterator[Edit]:
    """Inputs are not scaled, or examples are not shuffled."""
    for node in _scaled(program):
        left = node.left.left if isinstance(node.left, ast.BinOp) else node.left
        yield program.replaced(node, program.operand(left))
    for call in program.calls("transform"):
        if call.args:
            yield program.replaced(call, program.source(call.args[0]))
    for call in program.calls("DataLoader"):
        shuffled = argument(call, "shuffle")
        if isinstance(shuffled, ast.Constant) and shuffled.value is True:
            yield program.replaced(shuffled, "False")
    for call in program.calls("randperm"):
        yield program.renamed(call, "arange")


@injects("wrong_preprocessing_step")
def wrongly_prepared(program: TrainingProgram) -> Iterator[Edit]:
    """Inputs are scaled to a hundredth of their size, or a scaler is fitted again."""
    for node in _scaled(program):
        right = program.operand(node.right)
        yield program.replaced(node.right, f"({right} / 100)")
    for call in program.calls("transform"):
        yield program.renamed(call, "fit_transform")


@injects("not_enough_training_data")
def few_examples(program: TrainingProgram) -> Iterator[Edit]:
    """Only the first 16 examples are used."""
    for first, _ in splits(program):
        assert isinstance(first.slice, ast.Slice)
        if first.slice.upper is not None:
            yield program.replaced(first.slice.upper, "16")


@injects("low_quality_training_data")
def noisy_inputs(program: TrainingProgram) -> Iterator[Edit]:
    """Noise is added to the inputs that is stronger than the signal."""
    if program.has_torch:
        for call in program.trained_calls:
            given = program.source(call.args[0])
            noisy = f"{given} + 5 * torch.randn({program.operand(call.args[0])}.shape)"
            yield program.replaced(call.args[0], noisy)


ROWS = (
    MutationOperator("wrong_labels_for_training_data", "The labels of a batch are assigned to other examples of the batch.",
                     with_suffix("losses", ".roll(1, 0)", 1)),
    MutationOperator("small_range_of_values_for_a_feature", "Inputs are divided by ten thousand.",
                     with_suffix("trained_calls", " * 1e-4")),
)  # fmt: skip
