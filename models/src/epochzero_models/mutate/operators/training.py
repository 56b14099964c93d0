"""Faults of how a model is trained: hyperparameters, loss, optimizer, judging, and the process itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from epochzero_models.mutate.operators.base import (
    MutationOperator,
    Places,
    injects,
    removed,
    renamed,
    with_argument,
)
from epochzero_models.mutate.operators.model import made_models, with_widths
from epochzero_models.mutate.program import Edit, TrainingProgram, argument, called

OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
_OTHER_OPTIMIZER = {
    "SGD": "Rprop", "Adam": "SGD", "AdamW": "SGD", "RMSprop": "SGD", "Adagrad": "SGD",
}  # fmt: skip
_OTHER_LOSS = {
    "CrossEntropyLoss": "NLLLoss", "cross_entropy": "nll_loss", "BCEWithLogitsLoss": "MSELoss",
    "binary_cross_entropy_with_logits": "mse_loss", "NLLLoss": "MultiMarginLoss", "BCELoss": "L1Loss",
    "MSELoss": "CosineEmbeddingLoss", "mse_loss": "binary_cross_entropy", "L1Loss": "BCELoss",
}  # fmt: skip
_DATA_NAMES = ("loader", "set", "dataset", "data", "iterator")


def _settings(
    program: TrainingProgram, name: str, calls: Iterable[ast.Call]
) -> Iterator[ast.Constant]:
    """Numbers passed to a keyword of these calls, or set by an option of the command line."""
    given = [argument(call, name) for call in calls]
    for call in program.calls("add_argument"):
        options = [each.value for each in call.args if isinstance(each, ast.Constant)]
        if f"--{name.replace('_', '-')}" in options or f"--{name}" in options:
            given.append(argument(call, "default"))
    for node in given:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node


# -- Hyperparameters ---------------------------------------------------------------------------


@injects("suboptimal_hyperparameters_tuning")
def badly_tuned(program: TrainingProgram) -> Iterator[Edit]:
    """A dropout rate is set to 0.95, or a weight decay or a gradient limit to a value that stops learning."""
    for call in program.calls("Dropout", "Dropout2d"):
        if (rate := argument(call, "p", 0)) is not None:
            yield program.replaced(rate, "0.95")
    for decay in _settings(program, "weight_decay", program.calls(*OPTIMIZERS)):
        yield program.replaced(decay, "5.0")
    for call in program.calls("clip_grad_norm_"):
        if (limit := argument(call, "max_norm", 1)) is not None:
            yield program.replaced(limit, "1e-5")


@injects("suboptimal_learning_rate")
def wrong_rate(program: TrainingProgram) -> Iterator[Edit]:
    """The learning rate is multiplied or divided by 300."""
    for rate in _settings(program, "lr", program.calls(*OPTIMIZERS)):
        assert isinstance(rate.value, int | float)
        yield program.replaced(rate, f"{rate.value * 300:g}")
        yield program.replaced(rate, f"{rate.value / 300:g}")


@injects("data_batching_required")
def one_batch(program: TrainingProgram) -> Iterator[Edit]:
    """All examples form one batch."""
    for call in program.training_loaders:
        size = argument(call, "batch_size", 1)
        if size is not None and call.args:
            yield program.replaced(size, f"len({program.source(call.args[0])})")
    for call in program.calls("split"):
        if isinstance(program.parent(call), ast.For) and isinstance(call.func, ast.Attribute):
            yield program.replaced(call.args[0], f"len({program.source(call.func.value)})")


@injects("suboptimal_number_of_epochs")
def one_epoch(program: TrainingProgram) -> Iterator[Edit]:
    """The model is trained for one epoch."""
    for loop in program.epoch_loops:
        assert isinstance(loop.iter, ast.Call)
        match loop.iter.args:
            case [_]:
                yield program.replaced(loop.iter.args[0], "1")
            case [first, last]:
                yield program.replaced(last, f"{program.operand(first)} + 1")


@injects("suboptimal_batch_size")
def large_batch(program: TrainingProgram) -> Iterator[Edit]:
    """The batch size is multiplied by 16."""
    for size in _settings(program, "batch_size", program.training_loaders):
        assert isinstance(size.value, int)
        yield program.replaced(size, str(16 * size.value))
    for call in program.calls("split"):
        if isinstance(program.parent(call), ast.For) and isinstance(call.args[0], ast.Constant):
            yield program.replaced(call.args[0], f"16 * {program.source(call.args[0])}")


@injects("wrongly_implemented_data_batching")
def same_batch(program: TrainingProgram) -> Iterator[Edit]:
    """Every iteration uses the first batch."""
    for loop in program.training_loops:
        for node in ast.walk(loop):
            cut = node if isinstance(node, ast.Slice) else None
            if cut and cut.lower and isinstance(cut.upper, ast.BinOp):
                size = program.source(cut.upper.right)
                start, end = program.span(cut.lower)[0], program.span(cut.upper)[1]
                yield Edit(start, end, f":{size}")
        if isinstance(loop.iter, ast.Name):
            data = program.source(loop.iter)
            yield program.replaced(loop.iter, f"[next(iter({data}))] * len({data})")


@injects("missing_regularization")
def without_decay(program: TrainingProgram) -> Iterator[Edit]:
    """Weight decay is removed."""
    for decay in _settings(program, "weight_decay", program.calls(*OPTIMIZERS)):
        if decay.value:
            yield program.replaced(decay, "0.0")


# -- Loss --------------------------------------------------------------------------------------


@injects("wrong_loss_function_calculation")
def wrong_sign(program: TrainingProgram) -> Iterator[Edit]:
    """The loss has the wrong sign."""
    for call in program.calls("backward"):
        if isinstance(call.func, ast.Attribute):
            owner = call.func.value
            yield program.replaced(owner, f"(-{program.operand(owner)})")


@injects("missing_masking_of_invalid_values")
def unmasked(program: TrainingProgram) -> Iterator[Edit]:
    """The masking or replacement of invalid values is removed."""
    yield from removed(calls=("masked_fill", "masked_select", "nan_to_num"))(program)
    for call in program.all(ast.Call):
        ignored = argument(call, "ignore_index")
        if ignored is not None:
            yield program.replaced(ignored, "-100")


@injects("missing_loss_function")
def without_loss(program: TrainingProgram) -> Iterator[Edit]:
    """The mean of the predictions is minimized."""
    for call in program.losses:
        yield program.replaced(call, f"{program.operand(call.args[0])}.mean()")


# -- Judging -----------------------------------------------------------------------------------


@injects("missing_validation_set")
def judged_by_training(program: TrainingProgram) -> Iterator[Edit]:
    """The training data are used for validation."""
    known = {node.id for node in program.all(ast.Name) if isinstance(node.ctx, ast.Store)}
    for node in program.all(ast.Name):
        before, _, after = node.id.partition("_")
        training = f"train_{after}"
        validates = before in ("val", "valid", "validation", "test") and after in _DATA_NAMES
        if isinstance(node.ctx, ast.Load) and validates and training in known:
            yield program.replaced(node, training)


@injects("wrong_performance_metric")
def lenient_metric(program: TrainingProgram) -> Iterator[Edit]:
    """A prediction that is off by one class counts as correct."""
    for node in program.all(ast.Compare):
        if "argmax" in program.source(node) and isinstance(node.ops[0], ast.Eq):
            left, right = program.operand(node.left), program.operand(node.comparators[0])
            yield program.replaced(node, f"(({left} - {right}).abs() <= 1)")


@injects("incorrect_train_test_split")
def leaking_split(program: TrainingProgram) -> Iterator[Edit]:
    """The test examples include the training examples."""
    for _, rest in splits(program):
        assert isinstance(rest.slice, ast.Slice)
        if rest.slice.lower is not None:
            yield program.replaced(rest.slice.lower, "0")
    for call in program.calls("train_test_split"):
        if (share := argument(call, "test_size")) is not None:
            yield program.replaced(share, "0.95")


def splits(program: TrainingProgram) -> Iterator[tuple[ast.Subscript, ast.Subscript]]:
    """Pairs of ``x[:n]`` and ``x[n:]``."""
    cuts = [node for node in program.all(ast.Subscript) if isinstance(node.slice, ast.Slice)]
    for first in cuts:
        for rest in cuts:
            one, other = first.slice, rest.slice
            assert isinstance(one, ast.Slice)
            assert isinstance(other, ast.Slice)
            if one.lower or other.upper or not one.upper or not other.lower:
                continue
            if ast.dump(one.upper) == ast.dump(other.lower) and ast.dump(first.value) == ast.dump(
                rest.value
            ):
                yield first, rest


# -- Optimizer ---------------------------------------------------------------------------------


@injects("wrong_optimization_function")
def wrong_optimizer(program: TrainingProgram) -> Iterator[Edit]:
    """Adam and its variants are replaced by SGD, and SGD by Rprop, with the same learning rate."""
    for call in program.calls(*OPTIMIZERS):
        rate = argument(call, "lr", 1)
        if rate is None or not call.args or not isinstance(call.func, ast.Attribute):
            continue
        module, given = program.source(call.func.value), program.source(call.args[0])
        name = _OTHER_OPTIMIZER[called(call)]
        yield program.replaced(call, f"{module}.{name}({given}, lr={program.source(rate)})")


# -- The process -------------------------------------------------------------------------------


@injects("wrong_management_of_memory_resources")
def kept_graphs(program: TrainingProgram) -> Iterator[Edit]:
    """The losses of all batches are stored with their graphs."""
    within = [node for loop in program.training_loops for node in ast.walk(loop)]
    for call in program.calls("item"):
        summed = isinstance(program.statement(call), ast.AugAssign) or "append" in program.source(
            program.statement(call)
        )
        if call in within and summed and isinstance(call.func, ast.Attribute):
            yield program.replaced(call, program.source(call.func.value))


@injects("reference_to_nonexisting_checkpoint")
def missing_checkpoint(program: TrainingProgram) -> Iterator[Edit]:
    """The file that is loaded does not exist."""
    for call in program.calls("load", "load_file", "from_pretrained"):
        if call.args and isinstance(call.args[0], ast.Constant | ast.Name):
            yield program.replaced(call.args[0], '"checkpoints/missing.pt"')


def _augmented(*, before: bool) -> Places:
    """An option that turns augmentation on or off is inverted."""

    def places(program: TrainingProgram) -> Iterator[Edit]:
        for call in program.all(ast.Call):
            for keyword in ("augment", "augmentation", "training", "train", "is_train"):
                given = argument(call, keyword)
                if isinstance(given, ast.Constant) and given.value is before:
                    yield program.replaced(given, str(not before))

    return places


@injects("wrong_calculation_of_gradients")
def wrong_gradients(program: TrainingProgram) -> Iterator[Edit]:
    """The gradients have the wrong sign."""
    names = [program.source(each.targets[0]) for each in made_models(program)]
    for call in program.calls("backward"):
        if names and program.alone(call):
            lines = (f"for parameter in {names[0]}.parameters():", "    parameter.grad.neg_()")
            yield program.followed(program.statement(call), *lines)


@injects("wrongly_implemented_back_propagation")
def cut_off(program: TrainingProgram) -> Iterator[Edit]:
    """A layer receives a tensor that is detached from the previous layers."""
    for call in program.layer_calls:
        if program.is_computed(call.args[0]):
            given = program.operand(call.args[0])
            yield program.replaced(call.args[0], f"{given}.detach()")


ROWS = (
    MutationOperator("wrong_selection_of_loss_function", "The loss is replaced by one for another task.",
                     renamed(_OTHER_LOSS)),
    MutationOperator("epsilon_for_adam_too_low", "Adam's epsilon is set close to zero.",
                     with_argument(("Adam", "AdamW", "RMSprop"), "eps", "1e-38")),
    MutationOperator("model_too_big_for_memory", "A width that hidden layers share is set to 1,000,000.",
                     with_widths("1_000_000")),
    MutationOperator("missing_data_augmentation", "Data augmentation is removed.",
                     _augmented(before=True)),
    MutationOperator("redundant_data_augmentation", "Test examples are augmented too.",
                     _augmented(before=False)),
)  # fmt: skip
