"""Faults of how the framework is called."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero_models.mutate.operators.base import MutationOperator, injects, without_method
from epochzero_models.mutate.program import Edit, TrainingProgram

_NEEDED = ("zero_grad", "backward", "step", "eval", "train")
"""Methods that a training loop must call."""


@injects("wrong_api_usage")
def not_called(program: TrainingProgram) -> Iterator[Edit]:
    """A method is referenced but not called."""
    for call in program.calls(*_NEEDED):
        if program.alone(call):
            yield program.replaced(call, program.source(call.func))


@injects("missing_api_call")
def left_out(program: TrainingProgram) -> Iterator[Edit]:
    """A call that clears, computes or applies gradients, or sets the mode, is removed."""
    for call in program.calls(*_NEEDED):
        if program.alone(call):
            yield program.deleted(program.statement(call))


ROWS = (
    MutationOperator("deprecated_api", "A loss is converted to a number as in PyTorch 0.3.",
                     without_method("item", ".data[0]")),
    MutationOperator("wrong_usage_of_image_decoding_api", "Images are not converted to the same number of channels.",
                     without_method("convert")),
)  # fmt: skip
