"""Faults of tensors and inputs: their shape, format and type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero_models.mutate.operators.base import MutationOperator, injects, removed, with_suffix
from epochzero_models.mutate.operators.model import RECURRENT
from epochzero_models.mutate.program import Edit, TrainingProgram, argument


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


ROWS = (
    MutationOperator("wrong_tensor_shape", "A squeeze, an unsqueeze or a permutation of dimensions is removed.",
                     removed(calls=("squeeze", "unsqueeze", "permute", "transpose"))),
    MutationOperator("tensor_shape_mismatch", "The target of the loss has one more dimension than the prediction.",
                     with_suffix("losses", ".unsqueeze(0)", 1)),
    MutationOperator("wrong_shape_of_input_data", "The model receives the first example of a batch instead of the batch.",
                     with_suffix("trained_calls", "[0]")),
    MutationOperator("wrong_shape_of_input_data_for_a_layer", "A layer receives a tensor with its last two dimensions swapped.",
                     with_suffix("layer_calls", ".transpose(-1, -2)")),
    MutationOperator("wrong_shape_of_input_data_for_a_method", "The loss receives flattened predictions.",
                     with_suffix("losses", ".flatten()")),
    MutationOperator("wrong_type_of_input_data", "The model receives integers.",
                     with_suffix("trained_calls", ".long()")),
    MutationOperator("wrong_type_of_input_data_for_a_layer", "A layer receives integers.",
                     with_suffix("layer_calls", ".long()")),
    MutationOperator("wrong_type_of_input_data_for_a_method", "The loss receives targets of double precision.",
                     with_suffix("losses", ".double()", 1)),
)  # fmt: skip
