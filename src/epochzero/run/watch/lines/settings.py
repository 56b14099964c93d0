"""Where a value was written that a call was given: an argument, a name, an option, a dictionary."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from epochzero.run.watch.history import ModelLayer, Record, TrainingHistory
from epochzero.run.watch.lines.options import MAKERS
from epochzero.run.watch.lines.program import EACH, ParsedFile, Use, argument, last_name, parsed
from epochzero.run.watch.model import SourceLine

_MOST = 20
CONVERSIONS = ("int", "float", "bool", "str", "tuple", "list", "tensor", "as_tensor", "Tensor",
                "FloatTensor", "array", "asarray", "from_numpy", "to", "cuda", "cpu", "field", "Field")  # fmt: skip
_SCHEDULE = (
    "gamma",
    "factor",
    "lr_lambda",
    "T_max",
    "max_lr",
    "end_factor",
    "total_iters",
    "step_size",
)


def place_of(record: Record | None) -> SourceLine | None:
    """The line that made what a record describes."""
    found = (record or {}).get("place")
    return SourceLine(*found) if found else None


_EPOCHS = ("num_train_epochs", "max_epochs", "num_epochs", "epochs")
_OF_KERAS = {
    "alpha": "rho", "betas": "beta_1", "eps": "epsilon", "hidden_size": "units", "lr": "learning_rate",
    "max_norm": "clipnorm", "out_channels": "filters", "out_features": "units", "p": "rate",
}  # fmt: skip
"""What Keras calls the same."""
_OF_TRAINERS = {
    "max_norm": "max_grad_norm",
    "batch_size": "per_device_train_batch_size",
    "eps": "adam_epsilon",
}


def setting_place(
    made: SourceLine | None, keyword: str, position: int | None = None, name: str = ""
) -> SourceLine | None:
    """The line that gave a parameter of a call its value: the argument, or what it names.

    Follows names, attributes, parameters of functions and their defaults, options of ``argparse``, and
    dictionaries. Where nothing is found, the call.

    Args:
        made: a line of the call.
        keyword: of the call.
        position: of the argument, for a call without the keyword.
        name: of what is called, where several calls share the line.
    """
    program = parsed(made.path) if made else None
    if made is None or program is None:
        return made
    calls = program.calls(made.line)
    for call in reversed([other for other in calls if last_name(other.func) == name] or calls):
        value = (
            argument(call, _OF_KERAS.get(keyword, keyword))
            or argument(call, keyword, position)
            or _unpacked(program, call, keyword)
        )
        if value is not None:
            return program.place(origin(program, value))
    if any(last_name(call.func) in ("train", "fit") for call in calls):
        # Of a trainer, its arguments have the settings.
        names = (keyword, *filter(None, (_OF_KERAS.get(keyword), _OF_TRAINERS.get(keyword))))
        given = (argument(call, word) for call in program.all_calls for word in names)
        value = next((value for value in given if value is not None), None)
        return program.place(origin(program, value)) if value is not None else made
    return made


def decay_place(history: TrainingHistory) -> SourceLine | None:
    """The line that set a weight decay: of an optimizer, else the regularizer of a layer of Keras."""
    layer = next((layer for layer in history.layers if layer.settings.get("weight_decay")), None)
    of_optimizer = any(
        group.get("weight_decay") for o in history.optimizers for group in o.get("groups", ())
    )
    if layer is not None and not of_optimizer:
        return setting_place(layer.place, "kernel_regularizer", name=layer.kind)
    return setting_place(next(map(place_of, history.optimizers), None), "weight_decay")


def width_place(layer: ModelLayer) -> SourceLine | None:
    """The line that says how many units a layer has: the second number of all kinds of torch."""
    for keyword in ("out_features", "out_channels", "hidden_size", "embedding_dim"):
        if keyword in layer.settings:
            return setting_place(layer.place, keyword, 1, layer.kind)
    return layer.place


def is_stepped(place: SourceLine | None) -> bool:
    """Whether the program calls ``step`` of what a line makes; True where the line gives it no name."""
    program = parsed(place.path) if place else None
    named = [
        target
        for statement in (program.nodes if program else ())
        if place
        and isinstance(statement, ast.Assign)
        and statement.lineno <= place.line <= (statement.end_lineno or 0)
        for target in statement.targets
    ]
    names = {last_name(target) for target in named} - {""}
    return not names or any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "step"
        and last_name(call.func.value) in names
        for call in (program.all_calls if program else ())
    )


def warmup_place(history: TrainingHistory) -> SourceLine | None:
    """The line that set how long the learning rate rises."""
    made = place_of(history.schedulers[-1]) if history.schedulers else None
    program = parsed(made.path) if made else None
    nodes = program.nodes if program else ()
    given = [(str(node.arg), node.value) for node in nodes if isinstance(node, ast.keyword)]
    given += [
        (last_name(node.targets[0]), node.value) for node in nodes if isinstance(node, ast.Assign)
    ]
    value = next((value for name, value in given if "warm" in name.lower()), None)
    return program.place(origin(program, value)) if program and value is not None else None


def stepping_place(history: TrainingHistory, call: SourceLine | None) -> SourceLine | None:
    """The line that steps a schedule; where a library does, the interval that it was given, else the schedule."""
    if call is not None and ".step(" in call.text:
        return call
    made = place_of(history.schedulers[-1]) if history.schedulers else None
    program = parsed(made.path) if made else None
    entries = (_entry(node, "interval") for node in (program.nodes if program else ()))
    value = next((entry for entry in entries if entry is not None), None)
    return program.place(value) if program and value is not None else schedule_place(history)


def stated_iterations(history: TrainingHistory) -> int | None:
    """Iterations of the whole training: counted at its end, planned, or the epochs that the source states."""
    if history.ended or history.planned:
        return history.planned or history.count
    made = next(map(place_of, (*history.schedulers, *history.optimizers)), None)
    program = parsed(made.path) if made else None
    batches = max((int(epoch.get("batches") or 0) for epoch in history.epochs), default=0)
    given = [
        argument(call, name) for call in (program.all_calls if program else ()) for name in _EPOCHS
    ]
    for loop in program.nodes if program else ():
        # An outer loop: what runs within it runs through a loader.
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and loop.iter.args:
            counts = last_name(loop.iter.func) == "range" and "epoch" in last_name(loop.target)
            given += [loop.iter.args[-1]] if counts else []
    numbers = [constant(program, count) for count in given if program]
    epochs = [number for number in numbers if type(number) is int]
    return batches * max(epochs) if batches and epochs else None


def schedule_place(history: TrainingHistory) -> SourceLine | None:
    """The line that gave the last schedule its factor or length."""
    made = place_of(history.schedulers[-1]) if history.schedulers else None
    return _first_setting(made, _SCHEDULE)


def assigned_place(history: TrainingHistory, name: str) -> SourceLine | None:
    """The first statement that assigns to an item or an attribute of this name."""
    paths = dict.fromkeys(p.path for r in history.optimizers if (p := place_of(r)) is not None)
    for program in filter(None, map(parsed, paths)):
        for node in program.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if any(
                isinstance(t, ast.Subscript | ast.Attribute) and last_name(t) == name
                for t in targets
            ):
                return program.place(node)
    return None


def clipping_place(history: TrainingHistory) -> SourceLine | None:
    """The line that set the limit at which gradients are clipped."""
    made = next(map(place_of, history.clips), None)
    return setting_place(made, "max_norm", 1) or made


def _first_setting(made: SourceLine | None, keywords: Iterable[str]) -> SourceLine | None:
    program = parsed(made.path) if made else None
    if made is None or program is None:
        return made
    for keyword in keywords:
        if any(argument(call, keyword) is not None for call in program.calls(made.line)):
            return setting_place(made, keyword)
    return made


def _unpacked(program: ParsedFile, call: ast.Call, keyword: str) -> ast.expr | None:
    """The value that ``**options``, a ``partial`` or a group of parameters has for a keyword."""
    for given in call.keywords:
        if given.arg is None and (value := _of_key(program, given.value, keyword)) is not None:
            return value
    for node in ast.walk(call):
        if isinstance(node, ast.Dict) and (value := _entry(node, keyword)) is not None:
            return value
    if isinstance(call.func, ast.Name):
        made = program.behind(Use(call.func))
        if made is not None and isinstance(made.node, ast.Call):
            return argument(made.node, keyword)
    return None


def _of_key(program: ParsedFile, mapping: ast.expr, key: str) -> ast.expr | None:
    """What a dictionary has for a key; one within another is found by its own."""
    if isinstance(mapping, ast.Subscript):
        mapping = _of_key(program, mapping.value, last_name(mapping)) or mapping
    for use in program.lineage(Use(mapping)):
        value = _entry(use.node, key)
        if value is not None:
            return value
    return None


def _entry(node: ast.AST, key: str) -> ast.expr | None:
    """What is given for a name where an object or a dictionary is made."""
    if isinstance(node, ast.Call):
        return argument(node, key)
    if not isinstance(node, ast.Dict):
        return None
    pairs = zip(node.keys, node.values, strict=True)
    return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)


def origin(program: ParsedFile, value: ast.expr) -> ast.AST:
    """Where the value of an expression was written down."""
    use = Use(value)
    for _ in range(_MOST):
        named = _named(program, use)
        if named is None:
            break
        use = named
    return use.node


def constant(program: ParsedFile, value: ast.expr | None) -> Any:
    """The number, text or truth value that an expression stands for; None where it is none that is written down."""
    found = origin(program, value) if value is not None else None
    return found.value if isinstance(found, ast.Constant) else None


def _named(program: ParsedFile, use: Use) -> Use | None:
    """What a name, an attribute, a conversion stands for; None for what stands for itself."""
    node = use.node
    if isinstance(node, ast.Call | ast.BinOp):
        inner = _converted(node) if isinstance(node, ast.Call) else _without_one(node)
        return replace(use, node=inner) if inner is not None else None
    if isinstance(node, ast.Tuple | ast.List) and not use.path:
        return None
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Tuple | ast.List):
        return None
    before = program.behind(use)
    if before is None or before.node is getattr(node, "value", None):
        written = _written(program, node, use)
        return Use(written, (), use.calls) if written is not None else None
    return before if before.changes is None and EACH not in before.path else None


def _converted(call: ast.Call) -> ast.expr | None:
    """What is only converted, where it has a name; a ``getattr`` and a ``get`` name one too."""
    name = last_name(call.func)
    if name == "getattr" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        return ast.copy_location(ast.Attribute(call.args[0], str(call.args[1].value)), call)
    if name == "get" and isinstance(call.func, ast.Attribute) and call.args:
        return ast.copy_location(ast.Subscript(call.func.value, call.args[0]), call)
    if name not in CONVERSIONS:
        return None
    given = call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and name in ("to", "cuda", "cpu"):
        given = call.func.value
    given = given if given is not None else argument(call, "default")
    named = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.BinOp
    return given if isinstance(given, named) or name in ("field", "Field") else None


def _without_one(node: ast.BinOp) -> ast.expr | None:
    """What one is added to or taken from: the number of a range is often one more than what was meant."""
    left, right = isinstance(node.left, ast.Constant), isinstance(node.right, ast.Constant)
    if not isinstance(node.op, ast.Add | ast.Sub) or left == right:
        return None
    number = node.left if left else node.right
    is_one = isinstance(number, ast.Constant) and number.value == 1
    return (node.right if left else node.left) if is_one else None


def _written(program: ParsedFile, node: ast.expr, use: Use) -> ast.expr | None:
    """Where ``args.name``, ``config["name"]`` or a parameter is given a value: by that name, in the file."""
    name = last_name(node)
    whole = node.value if isinstance(node, ast.Attribute | ast.Subscript) and name else None
    for step in program.lineage(Use(whole, (), use.calls)) if whole is not None else ():
        if (value := _entry(step.node, name)) is not None:
            return value
    for call in program.all_calls:
        if name and _is_option(call, name):
            return argument(call, "default") or call
    anywhere = (_entry(node, name) for node in program.nodes) if whole is not None else ()
    return next((e for e in anywhere if e is not None and last_name(e) != name), None)


def _is_option(call: ast.Call, name: str) -> bool:
    """Whether a call is ``add_argument("--name", ...)`` or an option of click."""
    return last_name(call.func) in MAKERS and any(
        isinstance(given, ast.Constant)
        and isinstance(given.value, str)
        and given.value.lstrip("-").replace("-", "_") == name
        for given in [*call.args, *(k.value for k in call.keywords if k.arg == "dest")]
    )
