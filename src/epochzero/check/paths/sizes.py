"""How much the program saves: the size of a model from the arguments of its layers, and how often.

Sizes are lower bounds: only layers with known arguments count, with 4 bytes for each parameter, or 2
if the program converts the model to half precision.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from epochzero.check.findings import SourceLocation
from epochzero.check.program.events import argument
from epochzero.check.program.model import Program
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant, Instance, Items, Value, constant_of, integer_of
from epochzero.check.tables import read_table

_HALF = re.compile(r"\.(half|bfloat16)$")
_DEEPEST = 8


@cache
def known_models() -> Mapping[str, float]:
    """Millions of parameters of well-known models, by name."""
    return read_table(__package__, "sizes.toml")


# -- Parameters ----------------------------------------------------------------------------------


class _Arguments:
    """Numbers among the arguments of a layer."""

    def __init__(self, layer: Instance) -> None:
        self._layer = layer

    def value(self, at: int, name: str, default: float | None = None) -> float:
        """A number; a flag is 0 or 1.

        Raises:
            LookupError: it is unknown.
        """
        given = argument(self._layer, at, name)
        if given is None and default is not None:
            return default
        if isinstance(given, Constant) and isinstance(given.value, int | float):
            return float(given.value)
        raise LookupError(name)

    def kernel(self, at: int, dimensions: int) -> float:
        """Cells of a kernel, given as one number or as one for each dimension."""
        given = argument(self._layer, at, "kernel_size")
        if isinstance(given, Items):
            sizes = [value.value for value in given.values if isinstance(value, Constant)]
            if len(sizes) == dimensions:
                return math.prod(size for size in sizes if isinstance(size, int))
        return self.value(at, "kernel_size") ** dimensions


def _linear(a: _Arguments) -> float:
    out = a.value(1, "out_features")
    return a.value(0, "in_features") * out + out * a.value(2, "bias", 1)


def _convolution(dimensions: int) -> Callable[[_Arguments], float]:
    def count(a: _Arguments) -> float:
        channels, out = a.value(0, "in_channels"), a.value(1, "out_channels")
        # If it is passed without its name, the position of `groups` differs between kinds of convolution.
        groups = a.value(99, "groups", 1)
        return channels * out * a.kernel(2, dimensions) / max(groups, 1) + out

    return count


def _embedding(a: _Arguments) -> float:
    return a.value(0, "num_embeddings") * a.value(1, "embedding_dim")


def _recurrent(gates: int) -> Callable[[_Arguments], float]:
    def count(a: _Arguments) -> float:
        hidden, layers = a.value(1, "hidden_size"), a.value(2, "num_layers", 1)
        ways = 1 + a.value(6, "bidirectional", 0)
        first = a.value(0, "input_size") + hidden + 2
        later = ways * hidden + hidden + 2
        return gates * hidden * ways * (first + (layers - 1) * later)

    return count


def _attention(a: _Arguments) -> float:
    width = a.value(0, "embed_dim")
    return 4 * width * (width + 1)


def _transformer_layer(attentions: int) -> Callable[[_Arguments], float]:
    def count(a: _Arguments) -> float:
        return _layer(a.value(0, "d_model"), a.value(2, "dim_feedforward", 2048), attentions)

    return count


def _layer(width: float, inner: float, attentions: int) -> float:
    norms = 2 * width * (attentions + 1)
    return attentions * 4 * width * (width + 1) + 2 * width * inner + width + inner + norms


def _transformer(a: _Arguments) -> float:
    width, inner = a.value(0, "d_model", 512), a.value(4, "dim_feedforward", 2048)
    encoders = a.value(2, "num_encoder_layers", 6)
    decoders = a.value(3, "num_decoder_layers", 6)
    return encoders * _layer(width, inner, 1) + decoders * _layer(width, inner, 2)


_LAYERS: Mapping[str, Callable[[_Arguments], float]] = {
    "Linear": _linear,
    "Conv1d": _convolution(1),
    "Conv2d": _convolution(2),
    "Conv3d": _convolution(3),
    "ConvTranspose1d": _convolution(1),
    "ConvTranspose2d": _convolution(2),
    "ConvTranspose3d": _convolution(3),
    "Embedding": _embedding,
    "EmbeddingBag": _embedding,
    "LSTM": _recurrent(4),
    "GRU": _recurrent(3),
    "RNN": _recurrent(1),
    "MultiheadAttention": _attention,
    "TransformerEncoderLayer": _transformer_layer(1),
    "TransformerDecoderLayer": _transformer_layer(2),
    "Transformer": _transformer,
}


def parameters(program: Program, model: Value, depth: int = 0) -> float | None:
    """A lower bound of the number of parameters of a model; None if nothing is known."""
    if not isinstance(model, Instance) or depth > _DEEPEST:
        return None
    if model.own:
        return _of_own(program, model)
    name = model.made_by
    if name in known_models():
        return known_models()[name] * 1e6
    library, _, last = name.rpartition(".")
    if last == "from_pretrained" and model.arguments:
        known = known_models().get(str(constant_of(model.arguments[0])))
        return known * 1e6 if known else None
    if not library.startswith("torch.nn"):
        return None
    if last in _LAYERS:
        return _count(last, model)
    parts = [parameters(program, part, depth + 1) for part in _parts(model)]
    known_parts = [part for part in parts if part is not None]
    if last in ("TransformerEncoder", "TransformerDecoder") and known_parts:
        return known_parts[0] * (integer_of(argument(model, 1, "num_layers")) or 1)
    return sum(known_parts) if known_parts else None


def _count(kind: str, layer: Instance) -> float | None:
    try:
        return _LAYERS[kind](_Arguments(layer))
    except (LookupError, OverflowError):
        return None


def _parts(model: Instance) -> Iterator[Value]:
    """Layers that are passed to a container, such as ``nn.Sequential``."""
    for part in (*model.arguments, *model.keywords.values()):
        yield from part.values if isinstance(part, Items) else (part,)


def _of_own(program: Program, model: Instance) -> float | None:
    """For a class of the job: all layers that its construction creates."""
    if model.place is None:
        return None
    counts = [
        _count(call.name.rpartition(".")[2], call.result)
        for call in program.calls
        if model.place in call.at.via
        and call.name.startswith("torch.nn.")
        and isinstance(call.result, Instance)
        and call.name.rpartition(".")[2] in _LAYERS
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# -- What is saved -------------------------------------------------------------------------------


def saved_bytes(program: Program, value: Value, depth: int = 0) -> float | None:
    """A lower bound of the saved size; None if nothing is known."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, Items):
        sizes = [saved_bytes(program, item, depth + 1) for item in value.values]
        known = [size for size in sizes if size is not None]
        return sum(known) if known else None
    if not isinstance(value, Instance):
        return None
    if value.made_by.endswith(".state_dict"):
        owner = _owner(program, value)
        return saved_bytes(program, owner, depth + 1) if owner is not None else None
    copies = _optimizer_copies(value)
    if copies is not None:
        return copies * (_all_optimized(program, value) or 0) or None
    count = parameters(program, value)
    halved = any(_HALF.search(call.name) for call in program.calls)
    return count * (2 if halved else 4) if count else None


def _owner(program: Program, state: Instance) -> Value | None:
    for call in program.calls:
        if call.result == state:
            return call.receiver
    return None


def _optimizer_copies(value: Instance) -> int | None:
    """How many numbers an optimizer stores for each parameter; None if it is not an optimizer."""
    kind = value.made_by.rpartition(".")[2]
    if "optim" not in value.made_by:
        return None
    if kind == "SGD":
        return int(bool(constant_of(value.keywords.get("momentum"))))
    return 2 if kind in ("Adam", "AdamW", "NAdam", "RAdam") else 1


def _all_optimized(program: Program, optimizer: Instance) -> float | None:
    """Size in bytes of the parameters of an optimizer: ``model.parameters()``."""
    first = argument(optimizer, 0, "params")
    if isinstance(first, Instance) and first.made_by.endswith(".parameters"):
        model = _owner(program, first)
        count = parameters(program, model) if model is not None else None
        return count * 4 if count else None
    return None


# -- How often -----------------------------------------------------------------------------------


def times_saved(program: Program, place: SourceLocation, via: tuple[SourceLocation, ...]) -> int:
    """A lower bound of how often a line runs, from the loops around it and its callers."""
    times = 1
    for location in (*via, place):
        for loop, conditions in enclosing_loops(program, location):
            count = rounds(program, loop)
            every = _every(conditions)
            if count is None or every is None:
                return 1
            times *= max(count // every, 1)
    return times


def enclosing_loops(program: Program, place: SourceLocation) -> list[tuple[ast.For, list[ast.If]]]:
    """The loops around a line within its function, the outermost first.

    Returns:
        Each with the conditions between it and the next loop, or the line.
    """
    module = program.by_path.get(place.path)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.If)
    found: list[tuple[ast.For, list[ast.If]]] = []
    for node in code_of(module).around_line(place.line, *kinds) if module else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = []
        elif isinstance(node, ast.For) and place.line > node.lineno:
            found.append((node, []))
        elif isinstance(node, ast.If) and found and place.line > node.lineno:
            found[-1][1].append(node)
    return found


def rounds(program: Program, loop: ast.For) -> int | None:
    """The number of iterations of a loop over ``range``; None if unknown."""
    call = loop.iter
    if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("range", "trange")):
        return None
    numbers = [_number(program, bound) for bound in call.args]
    if len(numbers) == 1 and numbers[0] is not None:
        return numbers[0]
    if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
        return max(numbers[1] - numbers[0], 0)
    return None


def _number(program: Program, node: ast.expr) -> int | None:
    """A number that is literal, an option of the command line, or one more than that."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _number(program, node.left), _number(program, node.right)
        return left + right if left is not None and right is not None else None
    if isinstance(node, ast.Attribute):
        return integer_of(program.options.get(node.attr))
    return _assigned(program, node.id) if isinstance(node, ast.Name) else None


def _assigned(program: Program, name: str) -> int | None:
    """The number that is assigned to a name of the entry point, if it is assigned once."""
    module = program.modules.get("__main__")
    values = [
        node.value.value
        for node in (ast.walk(module.tree) if module and module.tree else ())
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int)
    ]
    return values[0] if len(values) == 1 else None


def _every(conditions: list[ast.If]) -> int | None:
    """1 without a condition, n for ``if i % n == 0``; None for other conditions."""
    every = 1
    for condition in conditions:
        match condition.test:
            case ast.Compare(
                left=ast.BinOp(op=ast.Mod(), right=ast.Constant(value=int() as number)),
                ops=[ast.Eq()],
            ) if number > 0:
                every *= number
            case _:
                return None
    return every
