"""Which line made what a layer does: its activation, its first values, its precision, that it is frozen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from epochzero.run.watch.history import ModelLayer, Parameter, TrainingHistory
from epochzero.run.watch.lines.loss import backward_loss, losses, reached, sources
from epochzero.run.watch.lines.program import ParsedFile, Use, last_name, parsed
from epochzero.run.watch.lines.settings import constant, origin, place_of
from epochzero.run.watch.model import SourceLine

_HALF = re.compile(r"\.half\(|autocast\(|float16|bfloat16|\bfp16|\bbf16")
_STEP_FUNCTIONS = ("round", "floor", "ceil", "trunc", "sign", "argmax", "heaviside")
_ACTIVATIONS = ("softmax", "log_softmax", "sigmoid", "logsigmoid", "tanh", "relu", "exp")


def activation_place(layer: ModelLayer | None, path: str) -> SourceLine | None:
    """The line of an activation: of a function (``path:relu``) its call next to the layer before it."""
    name = path.partition(":")[2]
    if layer is None or layer.place is None or not name:
        return layer.place if layer else None
    program = parsed(layer.place.path)
    if program is None:
        return layer.place
    owner = program.class_at(layer.place.line)
    called = [call for call in program.all_calls if last_name(call.func) == name]
    called = [call for call in called if owner is None or program.owner(call) is owner] or called
    own = layer.path.rpartition(".")[2]
    around = [call for call in called if any(last_name(n) == own for n in ast.walk(call))]
    found = around or called
    return program.place(found[-1]) if found else layer.place


def call_place(layer: ModelLayer | None) -> SourceLine | None:
    """The line that calls a layer, if its model names it; else the line that made it."""
    place = layer.place if layer is not None else None
    found = _forward(layer)
    if layer is None or found is None:
        return place
    program, own = found[0], layer.path.rpartition(".")[2]
    calls = (
        call
        for call in program.all_calls
        if last_name(call.func) == own and isinstance(call.func, ast.Attribute)
    )
    return next((program.place(call) for call in calls if program.owner(call) is found[1]), place)


def omission_place(layer: ModelLayer) -> SourceLine | None:
    """The line that should call a layer: of the call of the layer that was made after it, or before it; else it was made."""
    found = _forward(layer)
    if found is None:
        return layer.place
    program, owner = found
    forward, begun = program.method(owner, "forward"), program.method(owner, "__init__")
    made = [
        last_name(node.targets[0])
        for node in ast.walk(begun or owner)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
    ]
    own = layer.path.rpartition(".")[2]
    at = made.index(own) if own in made else len(made)
    calls = {last_name(c.func): c for c in ast.walk(forward or owner) if isinstance(c, ast.Call)}
    siblings = (name for name in (*made[at + 1 :], *made[:at][::-1]) if name in calls)
    return next((program.place(calls[name]) for name in siblings), layer.place)


def ignores_an_argument(layer: ModelLayer) -> bool:
    """Whether the forward pass of the class that made a layer is given something that it does not read."""
    found = _forward(layer)
    forward = found[0].method(found[1], "forward") if found else None
    if forward is None:
        return False
    read = {node.id for node in ast.walk(forward) if isinstance(node, ast.Name)}
    return any(a.arg not in read and a.arg[:1] != "_" for a in forward.args.args[1:])


def _forward(layer: ModelLayer | None) -> tuple[ParsedFile, ast.ClassDef] | None:
    """The class that made a layer, if it has a forward pass."""
    program = parsed(layer.place.path) if layer is not None and layer.place is not None else None
    owner = program.class_at(layer.place.line) if program and layer and layer.place else None
    return (program, owner) if program and owner and program.method(owner, "forward") else None


def replaced_place(optimizer: SourceLine | None) -> SourceLine | None:
    """The line after that of an optimizer which puts another module into the model, or makes another model."""
    program = parsed(optimizer.path) if optimizer is not None else None
    calls = program.calls(optimizer.line) if program and optimizer else []
    held = [
        ast.unparse(node.func.value)
        for call in calls
        for node in ast.walk(call)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and "parameters" in node.func.attr
    ]
    for node in program.nodes if program and calls else ():
        if program and isinstance(node, ast.Assign) and node.lineno > calls[0].lineno:
            target, name = (
                ast.unparse(node.targets[0]),
                last_name(getattr(node.value, "func", ast.Pass())),
            )
            of_model = any(
                target == owner
                or target.startswith((f"{owner}.", f"{owner}[", f"{owner.partition('[')[0]}["))
                for owner in held
            )
            same = program.function(node) is program.function(calls[0])
            if of_model and same and name[:1].isupper() and not name.isupper():
                return program.place(node)
    return None


def output_place(history: TrainingHistory, path: str) -> SourceLine | None:
    """The line of the last activation; where no layer or function of the model is one, of that before the loss.

    Where there is none at all, the line of the last layer.
    """
    if path:
        return activation_place(history.layer(path), path)
    found = backward_loss(history)
    for use in reached(*found) if found else ():
        if found and isinstance(use.node, ast.Call) and last_name(use.node.func) in _ACTIVATIONS:
            return found[0].place(use.node)
    layers = (history.layer(path) for path, _ in reversed(history.order) if ":" not in path)
    return next((layer.place for layer in layers if layer is not None), None)


def initialization_place(history: TrainingHistory, parameter: Parameter) -> SourceLine | None:
    """The line that gave a parameter its first values by hand, else the one that made its layer."""
    layer = history.layer(parameter.layer)
    if layer is None or layer.place is None:
        return None
    fits = [
        (fit, program.place(node).line, program, node)
        for program in sources(history)
        for node, target in _filled(program)
        if (fit := _fit(program, node, target, layer, parameter.name))
    ]
    if not fits:
        name = parameter.name.rpartition(".")[2]
        return _created(history, layer.kind, name) or layer.place
    _, _, program, node = max(fits, key=lambda fit: fit[:2])
    return program.place(_chosen(program, node))


def _created(history: TrainingHistory, kind: str, name: str) -> SourceLine | None:
    """The statement of a class of the program that makes a parameter of this name."""
    for program in sources(history):
        owners = (n for n in program.nodes if isinstance(n, ast.ClassDef) and n.name == kind)
        for node in (inner for owner in owners for inner in ast.walk(owner)):
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if any(isinstance(t, ast.Attribute) and t.attr == name for t in targets):
                return program.place(node)
    return None


def _filled(program: ParsedFile) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Statements that change a parameter, and the parameter."""
    for node in program.nodes:
        if isinstance(node, ast.Call) and last_name(node.func).endswith("_"):
            method_of = node.func.value if isinstance(node.func, ast.Attribute) else None
            is_function = method_of is None or program.is_of_library(method_of)
            target = (node.args[0] if node.args else None) if is_function else method_of
            if target is not None:
                yield node, target
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((node, t) for t in targets if "weight" in _words(t) or "bias" in _words(t))


def _words(node: ast.AST) -> set[str]:
    return {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}


def _fit(program: ParsedFile, node: ast.AST, target: ast.expr, layer: ModelLayer, name: str) -> int:
    """How surely a statement changes this parameter: 0 for not, 3 where it names the layer."""
    while isinstance(target, ast.Subscript) or (
        isinstance(target, ast.Attribute) and target.attr in ("data", "grad")
    ):
        target = target.value
    if isinstance(target, ast.Name):
        of_any = any("parameters" in ast.dump(use.node) for use in program.lineage(Use(target)))
        return int(of_any and _is_let_through(program, node, name))
    if not isinstance(target, ast.Attribute) or target.attr != name.rpartition(".")[2]:
        return 0
    owner, parts = target.value, layer.path.split(".")
    step = last_name(owner) if not isinstance(owner, ast.Name) else ""
    if step:
        return 3 if step == parts[-1] else int(step in parts)
    own_calls = program.calls(layer.place.line) if layer.place else []
    for use in program.lineage(Use(owner)):
        if isinstance(use.node, ast.Call) and use.node in own_calls:
            return 3 if last_name(use.node.func) == layer.kind else 2
        if isinstance(use.node, ast.Call) and last_name(use.node.func)[:1].isupper():
            return 0
    guards = [ast.unparse(test) for test, _ in _guards(program, node)]
    kinds = [test for test in guards if "isinstance" in test]
    return int(not kinds) or 2 * any(layer.kind in test for test in kinds)


def _is_let_through(program: ParsedFile, node: ast.AST, name: str) -> bool:
    """Whether a parameter of this name passes the conditions about names around a statement."""
    own, other = ("weight", "bias") if name.endswith("weight") else ("bias", "weight")
    return all(
        (own if otherwise else other) not in ast.unparse(test)
        for test, otherwise in _guards(program, node)
    )


def _guards(program: ParsedFile, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions around a statement, and whether it is what is done otherwise."""
    inner = node
    for outer in program.around(node):
        if isinstance(outer, ast.If):
            yield outer.test, inner in outer.orelse
        inner = outer


def _chosen(program: ParsedFile, node: ast.AST) -> ast.AST:
    """The number that was written for an initial value, where it has a name of its own; else the statement."""
    given = (
        [*node.args[1:], *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    )
    for value in given:
        number = origin(program, value) if isinstance(value, ast.Name | ast.Attribute) else value
        if number is not value and isinstance(number, ast.Constant):
            return number
    return node


def frozen_place(history: TrainingHistory, parameter: Parameter) -> SourceLine | None:
    """The line that keeps a parameter from being trained."""
    layer = history.layer(parameter.layer)
    made = layer.place if layer else None
    if parameter.trainable and not parameter.held:
        optimizer = next(map(place_of, history.optimizers), None)
        return replaced_place(optimizer) or optimizer or made
    for program in sources(history):
        for node in program.nodes:
            if _detaches(program, node) if parameter.trainable else _freezes(node):
                return program.place(node)
    return made


def copy_place(history: TrainingHistory, path: str) -> SourceLine | None:
    """The line that makes a copy of a model, or should update it: the last that names it with parameters or a copy."""
    name = path.rpartition(".")[2] or path
    found: list[SourceLine] = []
    for program in sources(history):
        if (never := _never_reached(program, name, history.count)) is not None:
            return never
        for node in program.nodes:
            if isinstance(node, ast.Assign) and any(last_name(t) == name for t in node.targets):
                if last_name(getattr(node.value, "func", node.value)) in (
                    "deepcopy",
                    "EMA",
                    "AveragedModel",
                ):
                    return program.place(node)
            elif isinstance(node, ast.For) and name in {last_name(n) for n in ast.walk(node.iter)}:
                found.append(program.place(node))
    return found[-1] if found and name else None


def _never_reached(program: ParsedFile, name: str, count: int) -> SourceLine | None:
    """The number of steps after which a copy would be updated for the first time, if there were fewer."""
    for call in program.all_calls:
        updates = last_name(call.func) in ("load_state_dict", "copy_", "lerp_", "update_parameters")
        if (
            not updates
            or not isinstance(call.func, ast.Attribute)
            or last_name(call.func.value) != name
        ):
            continue
        for test in (outer.test for outer in program.around(call) if isinstance(outer, ast.If)):
            for part in ast.walk(test):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                    period = constant(program, part.right)
                    if isinstance(period, int) and period >= count:
                        return program.place(origin(program, part.right))
    return None


def step_function_place(history: TrainingHistory) -> SourceLine | None:
    """The first call of a function that is constant between its steps."""
    calls = ((program, call) for program in sources(history) for call in program.all_calls)
    found = (
        program.place(call)
        for program, call in calls
        if getattr(call.func, "attr", "") in _STEP_FUNCTIONS
    )
    return next(found, None)


def alias_place(history: TrainingHistory) -> SourceLine | None:
    """The statement that gives a model, whose parameters are asked for, a second name."""
    for program in sources(history):
        calls = [call.func for call in program.all_calls if isinstance(call.func, ast.Attribute)]
        models = {last_name(call.value) for call in calls if call.attr == "parameters"}
        for node in program.nodes:
            if isinstance(node, ast.Assign) and getattr(node.value, "id", None) in models:
                return program.place(node)
    return None


def cut_place(history: TrainingHistory) -> SourceLine | None:
    """The line that cuts what is minimized off from the model, if there is only one that may."""
    found = {
        program.place(use.node)
        for program, loss in losses(history)
        for use in reached(program, loss)
        if isinstance(use.node, ast.Call)
        and last_name(use.node.func) in ("detach", "item", "numpy")
    }
    return found.pop() if len(found) == 1 else None


def _blending(history: TrainingHistory) -> Iterator[tuple[ParsedFile, ast.For]]:
    """Loops over the parameters of two models."""
    for program in sources(history):
        for loop in program.nodes:
            if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
                both = sum("parameters" in ast.unparse(a) for a in loop.iter.args) == 2
                if both and last_name(loop.iter) == "zip":
                    yield program, loop


def blending_place(history: TrainingHistory, name: str = "") -> SourceLine | None:
    """The statement that should bring the parameters of a copy closer to those of the model, in a loop over both.

    Args:
        history: of the training.
        name: of the copy, which the loop or a call of its function must name; empty for any.
    """
    for program, loop in _blending(history):
        function = program.function(loop)
        calls = list(program.calls_of(function)) if function else []
        named = {last_name(n) for part in (loop.iter, *calls) for n in ast.walk(part)}
        if not name or name in named:
            return program.place(loop.body[0])
    return None


def averaging_place(history: TrainingHistory) -> SourceLine | None:
    """The loop that writes to parameters, and only to them, without gradients: that of an average."""
    for program in sources(history):
        for loop in program.nodes:
            if isinstance(loop, ast.For) and "parameters" in ast.unparse(loop.iter):
                text = ast.unparse(loop)
                if ".grad" not in text and re.search(
                    r"\.(mul_|lerp_|copy_|add_)\(|\.data = ", text
                ):
                    return program.place(loop)
    return None


def decays_of_copies(history: TrainingHistory) -> Iterator[tuple[float, SourceLine]]:
    """The decay of each average of weights that the source computes, ``1 - decay`` or the weight of ``lerp_``."""
    for program, loop in _blending(history):
        for node in ast.walk(loop):
            of_copy: ast.expr | None = None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                of_copy = node.right if ast.unparse(node.left) in ("1", "1.0") else None
            elif isinstance(node, ast.Call) and last_name(node.func) == "lerp_" and node.args:
                of_copy = node.args[-1]
            number = constant(program, of_copy)
            if isinstance(number, float) and of_copy is not None:
                decay = number if isinstance(node, ast.BinOp) else 1 - number
                yield decay, program.place(origin(program, of_copy))


def wrapping_place(history: TrainingHistory) -> SourceLine | None:
    """The line that wraps a model to train it in several processes."""
    for program in sources(history):
        for call in program.all_calls:
            if last_name(call.func) in ("DistributedDataParallel", "DDP"):
                return program.place(call)
    return None


def _detaches(program: ParsedFile, node: ast.AST) -> bool:
    """Whether a node cuts off gradients within a model, or of what is no mere number to print."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in (
        "detach",
        "detach_",
        "no_grad",
    ):
        return False
    owner, outside = program.owner(node), next(program.around(node))
    if owner is not None and program.method(owner, "forward"):
        return True
    is_printed = isinstance(outside, ast.Attribute) and outside.attr in (
        "cpu",
        "numpy",
        "item",
        "tolist",
    )
    return "detach" in last_name(node.func) and not is_printed


def _freezes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) == "requires_grad_"
    stored = isinstance(node, ast.Assign) and any(
        last_name(t) == "requires_grad" for t in node.targets
    )
    return stored or (isinstance(node, ast.keyword) and node.arg == "requires_grad")


def precision_place(history: TrainingHistory) -> SourceLine | None:
    """The line that chose half precision."""
    for program in sources(history):
        for number, text in enumerate(program.lines, 1):
            if _HALF.search(text.partition("#")[0]):
                return SourceLine(program.path, number, text.strip()[:200])
    return None
