"""Faults of how GPUs are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero_models.mutate.operators.base import (
    MutationOperator,
    injects,
    with_argument,
    without_method,
)
from epochzero_models.mutate.program import Edit, TrainingProgram, argument


def _moved(program: TrainingProgram, *, models: bool) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls that move an object to a device, with the object."""
    for call in program.calls("to", "cuda"):
        if isinstance(call.func, ast.Attribute):
            owner = call.func.value
            name = program.source(owner)
            made = isinstance(owner, ast.Call)
            if (name in program.models or made) is models:
                yield call, owner


@injects("missing_destination_gpu_device")
def model_not_moved(program: TrainingProgram) -> Iterator[Edit]:
    """The model is not moved to the device."""
    for call, owner in _moved(program, models=True):
        yield program.replaced(call, program.source(owner))


@injects("wrong_reference_to_gpu_device")
def wrong_gpu(program: TrainingProgram) -> Iterator[Edit]:
    """A GPU with a high index, which few machines have, is used."""
    for node in program.all(ast.Constant):
        if isinstance(node.value, str) and node.value in ("cuda", "cuda:0"):
            yield program.replaced(node, '"cuda:99"')


@injects("unsupported_operation_on_cuda_tensor")
def array_of_gpu(program: TrainingProgram) -> Iterator[Edit]:
    """A tensor on a GPU is converted to an array."""
    for call in program.calls("item", "tolist"):
        on_gpu = program.calls("cuda", "to")
        if on_gpu and isinstance(call.func, ast.Attribute):
            yield program.replaced(call, f"{program.source(call.func.value)}.numpy()")


@injects("conversion_to_cuda_inside_loop")
def moved_each_round(program: TrainingProgram) -> Iterator[Edit]:
    """The model is moved in each iteration."""
    devices = [call.args[0] for call, _ in _moved(program, models=True) if call.args]
    for loop in program.training_loops:
        for name in sorted(program.models)[:1]:
            for device in devices[:1]:
                line = f"{name}.to({program.source(device)})"
                yield program.preceded(loop.body[0], line)


@injects("missing_transfer_of_data_to_gpu")
def batch_not_moved(program: TrainingProgram) -> Iterator[Edit]:
    """A batch is not moved to the device."""
    for call, owner in _moved(program, models=False):
        if argument(call, "dtype") is None:
            yield program.replaced(call, program.source(owner))


@injects("wrong_tensor_transfer_to_gpu")
def moved_for_nothing(program: TrainingProgram) -> Iterator[Edit]:
    """The result of moving a tensor is discarded."""
    for call, _ in _moved(program, models=False):
        statement = program.statement(call)
        if isinstance(statement, ast.Assign) and statement.value is call:
            yield program.replaced(statement, program.source(call))


ROWS = (
    MutationOperator("wrong_data_parallelism_on_gpus", "A model is distributed to a GPU with a high index, which few machines have.",
                     with_argument(("DataParallel", "DistributedDataParallel"), "device_ids", "[99]")),
    MutationOperator("gpu_tensor_instead_of_cpu_tensor", "A tensor is not copied back from the GPU.",
                     without_method("cpu")),
)  # fmt: skip
