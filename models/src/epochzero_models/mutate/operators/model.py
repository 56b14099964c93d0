"""Faults of the model: its activations, its layers, and how it is put together."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from epochzero_models.mutate.operators.base import (
    MutationOperator,
    Places,
    enlarged,
    injects,
    removed,
    renamed,
)
from epochzero_models.mutate.program import Edit, TrainingProgram, argument, called

CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d")
RECURRENT = ("RNN", "LSTM", "GRU")
SIZED = ("Linear", *CONVOLUTIONS, *RECURRENT)
"""Layers whose first two arguments are their input and output."""
NORMALIZATIONS = (
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "InstanceNorm1d",
    "InstanceNorm2d", "RMSNorm",
)  # fmt: skip
ACTIVATIONS = ("ReLU", "LeakyReLU", "GELU", "ELU", "SiLU", "Tanh")
ACTIVATING = ("relu", "leaky_relu", "gelu", "elu", "silu", "tanh")
MAXIMUM_POOLING = ("MaxPool1d", "MaxPool2d", "max_pool1d", "max_pool2d")
AVERAGE_POOLING = ("AvgPool1d", "AvgPool2d", "avg_pool1d", "avg_pool2d")
_OTHER_LAYER = {
    "LSTM": "RNN", "GRU": "RNN", "Conv1d": "ConvTranspose1d", "Conv2d": "ConvTranspose2d",
    "BatchNorm1d": "LayerNorm", "BatchNorm2d": "InstanceNorm2d", "LayerNorm": "Dropout",
    "Embedding": "Linear",
}  # fmt: skip
_OTHER_POOLING = {
    **dict(zip(MAXIMUM_POOLING, AVERAGE_POOLING, strict=True)),
    **dict(zip(AVERAGE_POOLING, MAXIMUM_POOLING, strict=True)),
}


# -- Activation functions ----------------------------------------------------------------------


@injects("wrong_type_of_activation_function")
def wrong_activation(program: TrainingProgram) -> Iterator[Edit]:
    """A hidden activation is replaced by a sigmoid."""
    for call in program.calls(*ACTIVATIONS):
        if isinstance(call.func, ast.Attribute):
            yield program.replaced(call, f"{program.source(call.func.value)}.Sigmoid()")
    for call in program.calls(*ACTIVATING):
        yield program.renamed(call, "sigmoid")


# -- Properties of layers ----------------------------------------------------------------------


@injects("wrong_defined_input_and_output_shape")
def exchanged_shapes(program: TrainingProgram) -> Iterator[Edit]:
    """Input and output size of a layer are swapped."""
    for call in program.calls(*SIZED):
        if len(call.args) < 2 or isinstance(call.args[0], ast.Starred):
            continue
        before, after = (program.source(each) for each in call.args[:2])
        if before != after:
            start, end = program.span(call.args[0])[0], program.span(call.args[1])[1]
            yield Edit(start, end, f"{after}, {before}")


@injects("wrong_filter_size_for_convolutional_layer")
def wrong_kernel(program: TrainingProgram) -> Iterator[Edit]:
    """The kernel size of a convolution is increased by four."""
    for call in program.calls(*CONVOLUTIONS):
        size = argument(call, "kernel_size", 2)
        if isinstance(size, ast.Constant) and isinstance(size.value, int):
            yield program.replaced(size, str(size.value + 4))


@injects("bias_needed_in_a_layer")
def without_bias(program: TrainingProgram) -> Iterator[Edit]:
    """A layer gets bias=False. A normalization that follows would subtract the bias: such layers do not need one."""
    layers = program.calls("Linear", *CONVOLUTIONS, *NORMALIZATIONS, *ACTIVATIONS)
    for call, following in zip_longest(layers, layers[1:]):
        normalized = following is not None and called(following) in NORMALIZATIONS
        biased = called(call) in ("Linear", *CONVOLUTIONS) and not normalized
        if biased and argument(call, "bias", 3 if called(call) == "Linear" else None) is None:
            yield program.with_argument(call, "bias", "False")


def with_widths(value: str) -> Places:
    """Sets a width that hidden layers share."""
    return lambda program: (program.replaced(width, value) for width in widths(program))


def widths(program: TrainingProgram) -> Iterator[ast.Constant]:
    """The values of names that are the output size of one layer and the input size of another."""
    pairs = [call.args[:2] for call in program.calls(*SIZED)]
    inputs = {pair[0].id for pair in pairs if pair and isinstance(pair[0], ast.Name)}
    outputs = {pair[1].id for pair in pairs if len(pair) > 1 and isinstance(pair[1], ast.Name)}
    for name in sorted(inputs & outputs):
        values = [*_assigned(program, name), *_defaults(program, name)]
        if len(values) == 1:
            yield values[0]


def _assigned(program: TrainingProgram, name: str) -> Iterator[ast.Constant]:
    for node in program.all(ast.Assign):
        names = [program.source(target) for target in node.targets]
        if names == [name] and isinstance(node.value, ast.Constant):
            yield node.value


def _defaults(program: TrainingProgram, name: str) -> Iterator[ast.Constant]:
    for arguments in program.all(ast.arguments):
        with_default = arguments.args[len(arguments.args) - len(arguments.defaults) :]
        for each, value in zip(with_default, arguments.defaults, strict=True):
            if each.arg == name and isinstance(value, ast.Constant):
                yield value


@injects("wrong_amount_and_type_of_pooling")
def wrong_pooling(program: TrainingProgram) -> Iterator[Edit]:
    """A pooling layer is replaced by the other kind, with a kernel larger by one."""
    for call in program.calls(*_OTHER_POOLING):
        size = argument(call, "kernel_size", 0 if called(call)[0].isupper() else 1)
        if isinstance(size, ast.Constant) and isinstance(size.value, int):
            _, end = program.span(call.func)
            start = end - len(called(call))
            between = program.text[end : program.span(size)[0]]
            new = f"{_OTHER_POOLING[called(call)]}{between}{size.value + 1}"
            yield Edit(start, program.span(size)[1], new)


@injects("layers_dimension_mismatch")
def mismatched_layers(program: TrainingProgram) -> Iterator[Edit]:
    """The input size of a layer is twice the output size of the one before it."""
    layers = [call for call in program.calls(*SIZED) if len(call.args) > 1]
    for before, after in pairwise(layers):
        if ast.dump(before.args[1]) == ast.dump(after.args[0]):
            yield program.replaced(after.args[0], f"2 * {program.operand(after.args[0])}")


# -- Missing, redundant and wrong layers -------------------------------------------------------


@injects("missing_dense_layer")
def missing_dense(program: TrainingProgram) -> Iterator[Edit]:
    """A linear layer that is not the last one is removed."""
    yield from list(removed(("Linear",))(program))[:-1]


@injects("redundant_softmax_layer")
def redundant_softmax(program: TrainingProgram) -> Iterator[Edit]:
    """A softmax is applied before the cross entropy."""
    if program.calls("CrossEntropyLoss", "cross_entropy"):
        for call in program.losses:
            given = program.operand(call.args[0])
            yield program.replaced(call.args[0], f"{given}.softmax(dim=1)")


# -- The model as a whole ----------------------------------------------------------------------


@injects("wrong_model_initialization")
def without_super(program: TrainingProgram) -> Iterator[Edit]:
    """A module does not call the constructor of its class."""
    for call in program.calls("__init__"):
        if program.alone(call):
            yield program.deleted(program.statement(call))


@injects("wrong_weights_initialization")
def zero_weights(program: TrainingProgram) -> Iterator[Edit]:
    """All parameters are initialized to zero."""
    for statement in made_models(program):
        name = program.source(statement.targets[0])
        lines = (f"for parameter in {name}.parameters():", "    parameter.data.zero_()")
        yield program.followed(statement, *lines)


def made_models(program: TrainingProgram) -> Iterator[ast.Assign]:
    """The statements that create a model."""
    for statement in program.all(ast.Assign):
        target = statement.targets[0]
        is_model = isinstance(target, ast.Name) and target.id in program.models
        if is_model and len(statement.targets) == 1 and isinstance(statement.value, ast.Call):
            yield statement


@injects("suboptimal_network_structure")
def deep(program: TrainingProgram) -> Iterator[Edit]:
    """A layer with equal input and output size is repeated eight times."""
    for loop in program.all(ast.comprehension):
        layered = isinstance(program.parent(program.parent(loop)), ast.Call | ast.Starred)
        if layered and isinstance(loop.iter, ast.Call) and called(loop.iter) == "range":
            size = loop.iter.args[-1]
            yield program.replaced(size, f"8 * {program.operand(size)}")
    for call in program.calls("Linear"):
        same = len(call.args) == 2 and ast.dump(call.args[0]) == ast.dump(call.args[1])
        if same and isinstance(call.func, ast.Attribute):
            module, text = program.source(call.func.value), program.source(call)
            yield program.replaced(call, f"{module}.Sequential(*[{text} for _ in range(8)])")


@injects("multiple_initializations_of_cnn")
def made_anew(program: TrainingProgram) -> Iterator[Edit]:
    """The model is created again in each epoch."""
    for statement in made_models(program):
        for loop in program.epoch_loops:
            if program.parent(loop) is program.parent(statement):
                yield program.preceded(loop.body[0], program.source(statement))


ROWS = (
    MutationOperator("missing_softmax_activation_function", "A softmax that is called as a function is removed.",
                     removed(calls=("softmax", "log_softmax"))),
    MutationOperator("missing_relu_activation_function", "A ReLU is removed.",
                     removed(("ReLU", "LeakyReLU", "GELU"), ("relu", "leaky_relu", "gelu"))),
    MutationOperator("wrong_input_sample_size_for_linear_layer", "The input size of a linear layer is increased by one.",
                     enlarged(("Linear",), 0, "in_features")),
    MutationOperator("wrong_defined_input_shape", "The input size of a convolution, a recurrent or a normalization layer is increased by one.",
                     enlarged((*CONVOLUTIONS, *RECURRENT, *NORMALIZATIONS), 0)),
    MutationOperator("wrong_defined_output_shape", "The output size of a layer is increased by one.",
                     enlarged(SIZED, 1)),
    MutationOperator("suboptimal_number_of_neurons_in_a_layer", "A width that hidden layers share is set to 1.",
                     with_widths("1")),
    MutationOperator("missing_dropout_layer", "A dropout layer is removed.",
                     removed(("Dropout", "Dropout1d", "Dropout2d"), ("dropout",))),
    MutationOperator("missing_normalization_layer", "A normalization layer is removed.",
                     removed(NORMALIZATIONS)),
    MutationOperator("missing_softmax_layer", "A layer that computes probabilities is removed.",
                     removed(("Softmax", "LogSoftmax"))),
    MutationOperator("missing_flatten_layer", "The flattening of feature maps is removed.",
                     removed(("Flatten",), ("flatten",))),
    MutationOperator("missing_average_pooling_layer", "An average over positions is removed.",
                     removed(("AvgPool1d", "AvgPool2d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d"),
                             ("avg_pool1d", "avg_pool2d", "adaptive_avg_pool2d"))),
    MutationOperator("wrong_layer_type", "A layer is replaced by another kind.",
                     renamed(_OTHER_LAYER)),
    MutationOperator("wrong_type_of_pooling_layer", "Maximum pooling is replaced by average pooling, or vice versa.",
                     renamed(_OTHER_POOLING)),
)  # fmt: skip
