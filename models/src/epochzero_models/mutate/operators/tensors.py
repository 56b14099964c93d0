"""Faults of tensors and inputs: their shape, format and type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero_models.mutate.operators.base import injects
from epochzero_models.mutate.operators.model import RECURRENT, without_calls
from epochzero_models.mutate.program import Edit, TrainingProgram, argument


def _given(program: TrainingProgram, calls: list[ast.Call], method: str, position: int = 0) -> Iterator[Edit]:  # fmt: skip
    """An argument whose method is called first."""
    for call in calls:
        node = call.args[position]
        yield program.replaced(node, f"{program.operand(node)}.{method}")


@injects("wrong_tensor_shape")
def wrong_tensor_shape(program: TrainingProgram) -> Iterator[Edit]:
    """A squeeze, an unsqueeze or a permutation of dimensions is removed."""
    yield from without_calls(program, "squeeze", "unsqueeze", "permute", "transpose")


@injects("tensor_shape_mismatch")
def mismatched(program: TrainingProgram) -> Iterator[Edit]:
    """The target of the loss has one more dimension than the prediction."""
    yield from _given(program, program.losses, "unsqueeze(0)", 1)


@injects("wrong_input_format")
def wrong_format(program: TrainingProgram) -> Iterator[Edit]:
    """The dimension of channels or features is moved to the end."""
    for call in program.calls("unsqueeze"):
        place = argument(call, "dim", 0)
        if isinstance(place, ast.Constant) and place.value == 1 and not program.within(call, "forward"):  # fmt: skip
            yield program.replaced(place, "-1")


@injects("wrong_input_format_for_rnn")
def time_first(program: TrainingProgram) -> Iterator[Edit]:
    """A recurrent layer expects time first and receives the batch first."""
    for call in program.calls(*RECURRENT):
        if (first := argument(call, "batch_first")) is not None:
            yield program.replaced(first, "False")


@injects("wrong_format_of_passed_weights")
def listed_weights(program: TrainingProgram) -> Iterator[Edit]:
    """Weights are passed as a list."""
    for call in program.calls("load_state_dict"):
        if call.args:
            yield program.replaced(call.args[0], f"list({program.source(call.args[0])})")
    for call in program.all(ast.Call):
        for keyword in ("weight", "pos_weight"):
            if (given := argument(call, keyword)) is not None:
                yield program.replaced(given, f"{program.operand(given)}.tolist()")


@injects("incompatible_tensor_type")
def double_precision(program: TrainingProgram) -> Iterator[Edit]:
    """Inputs have double precision, unlike the model."""
    for attribute in program.all(ast.Attribute):
        if attribute.attr == "float32":
            yield program.replaced(attribute, f"{program.source(attribute.value)}.float64")
    for call in program.calls("astype"):
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == "float32":
            yield program.replaced(call.args[0], '"float64"')


@injects("wrong_shape_of_input_data")
def first_example(program: TrainingProgram) -> Iterator[Edit]:
    """The model receives the first example of a batch instead of the batch."""
    for call in program.trained_calls:
        yield program.replaced(call.args[0], f"{program.operand(call.args[0])}[0]")


@injects("wrong_shape_of_input_data_for_a_layer")
def turned_for_a_layer(program: TrainingProgram) -> Iterator[Edit]:
    """A layer receives a tensor with its last two dimensions swapped."""
    yield from _given(program, program.layer_calls, "transpose(-1, -2)")


@injects("wrong_shape_of_input_data_for_a_method")
def flat_for_the_loss(program: TrainingProgram) -> Iterator[Edit]:
    """The loss receives flattened predictions."""
    yield from _given(program, program.losses, "flatten()")


@injects("wrong_type_of_input_data")
def whole_numbers(program: TrainingProgram) -> Iterator[Edit]:
    """The model receives integers."""
    yield from _given(program, program.trained_calls, "long()")


@injects("wrong_type_of_input_data_for_a_layer")
def whole_numbers_for_a_layer(program: TrainingProgram) -> Iterator[Edit]:
    """A layer receives integers."""
    yield from _given(program, program.layer_calls, "long()")


@injects("wrong_type_of_input_data_for_a_method")
def double_for_the_loss(program: TrainingProgram) -> Iterator[Edit]:
    """The loss receives targets of double precision."""
    yield from _given(program, program.losses, "double()", 1)
