"""Which line of the user's source made a layer or set a value.

Each function begins at a line that was recorded while the job ran, and follows the source from there, as far as
`program` can; else it stays at that line. What was changed since the job began may have other lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from epochzero.run.watch.history import History, Layer, Parameter, Record
from epochzero.run.watch.model import Place
from epochzero.run.watch.program import (
    EACH,
    Function,
    Program,
    Use,
    argument,
    last_name,
    parsed,
)  # fmt: skip

__all__ = [
    "activation_place",
    "backward_place",
    "batch_size_place",
    "classes_place",
    "clipping_place",
    "drawn_place",
    "duplication_place",
    "epochs_place",
    "evaluation_place",
    "frozen_place",
    "initialization_place",
    "input_place",
    "label_place",
    "loop_place",
    "loss_place",
    "order_place",
    "output_place",
    "penalty_place",
    "place_of",
    "precision_place",
    "preprocessing_place",
    "schedule_place",
    "setting_place",
    "size_place",
    "split_place",
    "step_place",
    "width_place",
]

Found = tuple[Program, ast.AST]
_CONVERSIONS = ("int", "float", "bool", "str", "tuple", "list", "tensor", "as_tensor", "Tensor",
                "FloatTensor", "array", "asarray", "from_numpy", "to", "cuda", "cpu", "field", "Field")  # fmt: skip
_PLANNED = ("max_epochs", "num_train_epochs", "max_steps", "epochs", "num_epochs", "n_epochs")
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
_SCALES = re.compile(r"log\d*p?|exp|sqrt|transform|normalize|standardi[sz]e|scale|fit_transform|clip|clamp|div_?|mul_?|sub_?|add_?")  # fmt: skip
_RANDOM = re.compile(r"rand|permut|shuffle|noise|flip|roll|rotat|crop|jitter|mix|choice|erase|cutout|augment|transform")  # fmt: skip
_REPEATS = re.compile(r"repeat|tile|expand|choices?|randint|cycle|cat|concatenate")
_ORDERS = re.compile(r"arange|range|argsort|sort|sorted|linspace")
_HALF = re.compile(r"\.half\(|autocast\(|float16|bfloat16|\bfp16|\bbf16")
_ACTIVATIONS = ("softmax", "log_softmax", "sigmoid", "logsigmoid", "tanh", "relu", "exp")
_NO_GRADIENT = ("no_grad", "inference_mode", "set_grad_enabled")


def place_of(record: Record | None) -> Place | None:
    """The line that made what a record tells of."""
    found = (record or {}).get("place")
    return Place(*found) if found else None


def backward_place(history: History) -> Place | None:
    """The line that calls ``backward``."""
    return next(map(place_of, history.backwards), None)


def step_place(history: History) -> Place | None:
    """The line that calls an optimizer's ``step``, else the one that made it."""
    return next(map(place_of, (*history.steps, *history.optimizers)), None)


# Settings ---------------------------------------------------------------------------------------------


def setting_place(
    made: Place | None, keyword: str, position: int | None = None, name: str = ""
) -> Place | None:
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
    for call in reversed([one for one in calls if last_name(one.func) == name] or calls):
        value = argument(call, keyword, position) or _unpacked(program, call, keyword)
        if value is not None:
            return program.place(_origin(program, value))
    return made


def _unpacked(program: Program, call: ast.Call, keyword: str) -> ast.expr | None:
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


def _of_key(program: Program, mapping: ast.expr, key: str) -> ast.expr | None:
    for one in program.lineage(Use(mapping)):
        if isinstance(one.node, ast.Dict) and (value := _entry(one.node, key)) is not None:
            return value
        if isinstance(one.node, ast.Call) and last_name(one.node.func) == "dict":
            return argument(one.node, key)
    return None


def _entry(node: ast.Dict, key: str) -> ast.expr | None:
    pairs = zip(node.keys, node.values, strict=True)
    return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)


def _origin(program: Program, value: ast.expr) -> ast.AST:
    """Where the value of an expression was written down."""
    use = Use(value)
    for _ in range(20):
        node = use.node
        if isinstance(node, ast.Call):
            inner = _converted(node)
            if inner is None:
                break
            use = Use(inner, use.path, use.calls)
            continue
        if isinstance(node, ast.BinOp):
            # The number of a range is often one more than what was written down.
            use = Use(_without_one(node), use.path, use.calls)
            if use.node is node:
                break
            continue
        if isinstance(node, ast.Tuple | ast.List) and not use.path:
            break
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Tuple | ast.List):
            break
        before = program.behind(use)
        is_its_object = before is None or before.node is getattr(node, "value", None)
        if is_its_object and isinstance(node, ast.Attribute | ast.Subscript):
            return _written(program, node, use) or node
        if before is None or before.changes is not None or EACH in before.path:
            break
        use = before
    return use.node


def _converted(call: ast.Call) -> ast.expr | None:
    """What is only converted, where it has a name; a ``getattr`` and a ``get`` name one too."""
    name = last_name(call.func)
    if name == "getattr" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        return ast.copy_location(ast.Attribute(call.args[0], str(call.args[1].value)), call)
    if name == "get" and isinstance(call.func, ast.Attribute) and call.args:
        return ast.copy_location(ast.Subscript(call.func.value, call.args[0]), call)
    if name not in _CONVERSIONS:
        return None
    given = call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and name in ("to", "cuda", "cpu"):
        given = call.func.value
    given = given if given is not None else argument(call, "default")
    named = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.BinOp
    return given if isinstance(given, named) or name in ("field", "Field") else None


def _without_one(node: ast.BinOp) -> ast.expr:
    left, right = isinstance(node.left, ast.Constant), isinstance(node.right, ast.Constant)
    if not isinstance(node.op, ast.Add | ast.Sub) or left == right:
        return node
    number = node.left if left else node.right
    is_one = isinstance(number, ast.Constant) and number.value == 1
    return (node.right if left else node.left) if is_one else node


def _written(program: Program, node: ast.Attribute | ast.Subscript, use: Use) -> ast.AST | None:
    """Where ``args.name`` or ``config["name"]`` is given a value: of that name, anywhere in the file."""
    name = last_name(node)
    if not name:
        return None
    for made in program.lineage(Use(node.value, (), use.calls)):
        if isinstance(made.node, ast.Call) and (value := argument(made.node, name)) is not None:
            return _origin(program, value)
        if isinstance(made.node, ast.Dict) and (value := _entry(made.node, name)) is not None:
            return _origin(program, value)
    for call in program.all_calls:
        if _is_option(call, name):
            return argument(call, "default") or call
    for one in program.nodes:
        if isinstance(one, ast.Dict) and (value := _entry(one, name)) is not None:
            return _origin(program, value)
    for call in program.all_calls:
        value = argument(call, name)
        if value is not None and last_name(value) != name:
            return _origin(program, value)
    return None


def _is_option(call: ast.Call, name: str) -> bool:
    """Whether a call is ``add_argument("--name", ...)`` or an option of click."""
    return last_name(call.func) in ("add_argument", "option", "Option") and any(
        isinstance(given, ast.Constant)
        and isinstance(given.value, str)
        and given.value.lstrip("-").replace("-", "_") == name
        for given in [*call.args, *(k.value for k in call.keywords if k.arg == "dest")]
    )


def width_place(layer: Layer) -> Place | None:
    """The line that says how many units a layer has: the second number of all kinds of torch."""
    for keyword in ("out_features", "out_channels", "hidden_size", "embedding_dim"):
        if keyword in layer.settings:
            return setting_place(layer.place, keyword, 1, layer.kind)
    return layer.place


def schedule_place(history: History) -> Place | None:
    """The line that gave the last schedule its factor or length."""
    made = place_of(history.schedulers[-1]) if history.schedulers else None
    return _first_setting(made, _SCHEDULE)


def clipping_place(history: History) -> Place | None:
    """The line that set the limit at which gradients are clipped."""
    made = next(map(place_of, history.clips), None)
    return setting_place(made, "max_norm", 1) or made


def batch_size_place(history: History) -> Place | None:
    """The line that set the size of a batch: of the first loader, else in the loop of the training."""
    loader = next(map(place_of, history.loaders), None)
    if loader is not None:
        return setting_place(loader, "batch_size", 1, "DataLoader")
    found = _at(backward_place(history))
    if found is None:
        return None
    program, node = found
    for loop in _loops(program, node)[:1]:
        for call in (one for one in ast.walk(loop.iter) if isinstance(one, ast.Call)):
            name, given = last_name(call.func), call.args
            if name in ("range", "trange", "arange") and len(given) == 3:
                return program.place(_origin(program, given[2]))
            if name in ("split", "chunk", "array_split", "batch") and given:
                return program.place(_origin(program, given[-1]))
            value = argument(call, "batch_size")
            if value is not None:
                return program.place(_origin(program, value))
        return program.place(loop)
    return None


def _first_setting(made: Place | None, keywords: Iterable[str]) -> Place | None:
    program = parsed(made.path) if made else None
    if made is None or program is None:
        return made
    for keyword in keywords:
        if any(argument(call, keyword) is not None for call in program.calls(made.line)):
            return setting_place(made, keyword)
    return made


# Layers -----------------------------------------------------------------------------------------------


def activation_place(layer: Layer | None, path: str) -> Place | None:
    """The line of an activation: of a function (``path:relu``) its call beside the layer before it."""
    name = path.partition(":")[2]
    if layer is None or layer.place is None or not name:
        return layer.place if layer else None
    program = parsed(layer.place.path)
    if program is None:
        return layer.place
    owner = program.class_at(layer.place.line)
    called = [one for one in program.all_calls if last_name(one.func) == name]
    called = [one for one in called if owner is None or program.owner(one) is owner] or called
    own = layer.path.rpartition(".")[2]
    around = [one for one in called if any(last_name(n) == own for n in ast.walk(one))]
    found = around or called
    return program.place(found[-1]) if found else layer.place


def output_place(history: History, path: str) -> Place | None:
    """The line of the last activation; where no layer or function of the model is one, of that before the loss.

    Where there is none at all, the line of the last layer.
    """
    if path:
        return activation_place(history.layer(path), path)
    found = _backward_loss(history)
    for use in _reached(*found) if found else ():
        if found and isinstance(use.node, ast.Call) and last_name(use.node.func) in _ACTIVATIONS:
            return found[0].place(use.node)
    layers = (history.layer(path) for path, _ in reversed(history.order) if ":" not in path)
    return next((layer.place for layer in layers if layer is not None), None)


def initialization_place(history: History, parameter: Parameter) -> Place | None:
    """The line that gave a parameter its first values by hand, else the one that made its layer."""
    layer = history.layer(parameter.layer)
    if layer is None or layer.place is None:
        return None
    best: tuple[int, Place] | None = None
    for path in _files(history):
        program = parsed(path)
        for node, target in _filled(program) if program else ():
            fit = _fit(program, node, target, layer, parameter.name) if program else 0
            if program and fit and (best is None or fit >= best[0]):
                best = fit, program.place(_chosen(program, node))
    return best[1] if best else layer.place


def _filled(program: Program) -> Iterator[tuple[ast.AST, ast.expr]]:
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
            yield from (
                (node, one) for one in targets if "weight" in _words(one) or "bias" in _words(one)
            )


def _words(node: ast.AST) -> set[str]:
    return {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _fit(program: Program, node: ast.AST, target: ast.expr, layer: Layer, name: str) -> int:
    """How surely a statement changes this parameter: 0 for not, 3 where it names the layer."""
    while isinstance(target, ast.Subscript) or (
        isinstance(target, ast.Attribute) and target.attr in ("data", "grad")
    ):
        target = target.value
    if isinstance(target, ast.Name):
        of_any = any("parameters" in ast.dump(one.node) for one in program.lineage(Use(target)))
        return int(of_any and _is_let_through(program, node, name))
    if not isinstance(target, ast.Attribute) or target.attr != name.rpartition(".")[2]:
        return 0
    owner, parts = target.value, layer.path.split(".")
    step = last_name(owner) if not isinstance(owner, ast.Name) else ""
    if step:
        return 3 if step == parts[-1] else int(step in parts)
    own_calls = program.calls(layer.place.line) if layer.place else []
    for one in program.lineage(Use(owner)):
        if isinstance(one.node, ast.Call) and one.node in own_calls:
            return 3 if last_name(one.node.func) == layer.kind else 2
        if isinstance(one.node, ast.Call) and last_name(one.node.func)[:1].isupper():
            return 0
    guards = [ast.unparse(test) for test, _ in _guards(program, node)]
    kinds = [test for test in guards if "isinstance" in test]
    return int(not kinds) or 2 * any(layer.kind in test for test in kinds)


def _is_let_through(program: Program, node: ast.AST, name: str) -> bool:
    """Whether a parameter of this name passes the conditions about names around a statement."""
    own, other = ("weight", "bias") if name.endswith("weight") else ("bias", "weight")
    return all(
        (own if otherwise else other) not in ast.unparse(test)
        for test, otherwise in _guards(program, node)
    )


def _guards(program: Program, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions around a statement, and whether it is what is done otherwise."""
    inner = node
    for one in program.around(node):
        if isinstance(one, ast.If):
            yield one.test, inner in one.orelse
        inner = one


def _chosen(program: Program, node: ast.AST) -> ast.AST:
    """The number that was written for an initial value, where it has a name of its own; else the statement."""
    given = (
        [*node.args[1:], *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    )
    for value in given:
        origin = _origin(program, value) if isinstance(value, ast.Name | ast.Attribute) else value
        if origin is not value and isinstance(origin, ast.Constant):
            return origin
    return node


def frozen_place(history: History, parameter: Parameter) -> Place | None:
    """The line that keeps a parameter from being trained."""
    layer = history.layer(parameter.layer)
    made = layer.place if layer else None
    if parameter.trainable and not parameter.held:
        return next(map(place_of, history.optimizers), None) or made
    for program in map(parsed, _files(history)):
        for one in program.nodes if program else ():
            cuts = _detaches(program, one) if program and parameter.trainable else _freezes(one)
            if program and cuts:
                return program.place(one)
    return made


def _detaches(program: Program, node: ast.AST) -> bool:
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


def precision_place(history: History) -> Place | None:
    """The line that chose half precision."""
    for program in map(parsed, _files(history)):
        for number, text in enumerate(program.lines if program else (), 1):
            if program and _HALF.search(text.partition("#")[0]):
                return Place(program.path, number, text.strip()[:200])
    return None


def _files(history: History) -> list[str]:
    """The user's files that records tell of."""
    records = (*history.optimizers, *history.losses, *history.backwards, *history.loaders)
    places = [*(layer.place for layer in history.layers), *map(place_of, records)]
    return list(dict.fromkeys(place.path for place in places if place is not None))


# The loop of the training -----------------------------------------------------------------------------


def epochs_place(history: History) -> Place | None:
    """The line that says how long the training goes: of its loop, or what a trainer is told."""
    place = backward_place(history)
    found = _at(place)
    if found is None:
        return place
    program, node = found
    loops = _loops(program, node)
    named = [one for one in loops if "epoch" in ast.unparse(one.target).lower()]
    counted = [one for one in named or loops[::-1] if _limit(one) is not None]
    if counted:
        return program.place(_origin(program, _limit(counted[0]) or counted[0].iter))
    for around in reversed([one for one in program.around(node) if isinstance(one, ast.While)]):
        if isinstance(around.test, ast.Compare):
            return program.place(_origin(program, around.test.comparators[0]))
    for keyword in _PLANNED:
        for call in program.all_calls:
            value = argument(call, keyword)
            if value is not None:
                return program.place(_origin(program, value))
    return program.place(loops[-1]) if loops else place


def loop_place(history: History) -> Place | None:
    """The line of the loop over the batches."""
    place = backward_place(history)
    found = _at(place)
    loops = _loops(*found) if found else []
    return found[0].place(loops[0]) if found and loops else place


def evaluation_place(place: Place | None) -> Place | None:
    """The line where gradients are switched off around a call of the model, else that of the call."""
    found = _at(place)
    if found is None:
        return place
    program, node = found
    for one in program.around(node):
        if isinstance(one, ast.With) and any(
            last_name(item.context_expr) in _NO_GRADIENT for item in one.items
        ):
            return program.place(one)
    return place


def _at(place: Place | None) -> Found | None:
    """The outermost call over a line."""
    program = parsed(place.path) if place else None
    calls = program.calls(place.line) if place and program else []
    return (program, calls[0]) if program and calls else None


def _loops(program: Program, node: ast.AST) -> list[ast.For]:
    """The loops around a node, and around the calls of its function, the innermost first."""
    found: list[ast.For] = []
    seen: set[ast.AST] = set()
    while node not in seen:
        seen.add(node)
        function = program.function(node)
        for one in program.around(node):
            if one is function:
                break
            if isinstance(one, ast.For):
                found.append(one)
        if function is None:
            break
        node = next(program.calls_of(function), node)
    return found


def _limit(loop: ast.For) -> ast.expr | None:
    """What a loop counts to."""
    for call in (one for one in ast.walk(loop.iter) if isinstance(one, ast.Call)):
        if last_name(call.func) in ("range", "trange") and call.args:
            return call.args[0] if len(call.args) == 1 else call.args[1]
    return None


# The loss ---------------------------------------------------------------------------------------------


def loss_place(history: History, *keywords: str) -> Place | None:
    """The line that made the loss, or gave it the first of these settings that it has.

    Of a loss that the program computes itself, the line that does.
    """
    records = sorted(history.losses, key=lambda one: bool(one.get("evaluating")))
    place = place_of(records[0]) if records else None
    if place is None:
        return _own_loss(history)
    program = parsed(place.path)
    calls = program.calls(place.line) if program else []
    for call in calls:
        made = call if program and program.is_of_library(call.func) else _maker(program, call)
        if program is None or made is None or len(call.args) + len(call.keywords) < 2:
            continue
        given = (argument(made, keyword) for keyword in keywords)
        value = next((one for one in given if one is not None), None)
        return program.place(_origin(program, value) if value is not None else made)
    return place


def _maker(program: Program | None, call: ast.Call) -> ast.Call | None:
    """The call that made what is called, such as ``nn.MSELoss()`` of ``criterion(x, y)``."""
    if isinstance(call.func, ast.Call):
        return call.func
    if program is None or not isinstance(call.func, ast.Name | ast.Attribute):
        return None
    for one in program.lineage(Use(call.func)):
        if isinstance(one.node, ast.Call) and last_name(one.node.func) not in _CONVERSIONS:
            return one.node
    return None


def _own_loss(history: History) -> Place | None:
    """The line that computed the loss, before what is done to it in the line of its backward pass."""
    place = backward_place(history)
    found = _backward_loss(history)
    if place is None or found is None:
        return place
    program, loss = found
    uses = [use for use in program.lineage(Use(loss)) if not isinstance(use.node, ast.Name)]
    earlier = [use for use in uses if program.place(use.node).line < place.line]
    direct = any(isinstance(one, ast.Call) and len(one.args) > 1 for one in ast.walk(loss))
    if direct or not earlier:
        return place
    made = _maker(program, earlier[0].node) if isinstance(earlier[0].node, ast.Call) else None
    owner = program.class_of(made) if made is not None else None
    forward = program.method(owner, "forward") if owner is not None else None
    inside = ast.walk(forward) if forward is not None else ()
    returns = [one for one in inside if isinstance(one, ast.Return)]
    return program.place(returns[-1] if returns else earlier[0].node)


def _backward_loss(history: History) -> tuple[Program, ast.expr] | None:
    """The expression whose gradients are asked for."""
    place = backward_place(history)
    program = parsed(place.path) if place else None
    for call in program.calls(place.line) if program and place else ():
        if last_name(call.func) in ("backward", "manual_backward") and program:
            if call.args and not isinstance(call.args[0], ast.Constant):
                return program, call.args[0]
            if isinstance(call.func, ast.Attribute):
                return program, call.func.value
    return None


def penalty_place(history: History) -> Place | None:
    """The line that adds up the size of the weights for the loss."""
    place = backward_place(history)
    program = parsed(place.path) if place else None
    for call in program.all_calls if program else ():
        names = {last_name(one) for one in ast.walk(call) if isinstance(one, ast.Call)}
        sizes = names & {"pow", "norm", "square", "abs"} and not any("clip" in one for one in names)
        if program and sizes and names & {"parameters", "named_parameters"}:
            return program.place(call)
    return place


# Data -------------------------------------------------------------------------------------------------


def input_place(history: History) -> Place | None:
    """The line that last changed the numbers of the inputs, else where they became tensors or came from."""
    return _changed(_inputs(history), _is_unsafe, _is_in_place, _is_scaled, _is_tensor)


def label_place(history: History, *, order: bool = False) -> Place | None:
    """The line that last changed the numbers of the labels; of their order, that last drew or chose them."""
    uses = _targets(history)
    if order:
        return _changed(uses, _is_drawn, _is_in_place, _is_scaled, rest=False) or _changed(
            uses[::-1], _is_chosen
        )
    return _changed(uses, _is_scaled, _is_in_place, _is_tensor)


def classes_place(history: History) -> Place | None:
    """The line that chose which examples there are of each class."""
    uses = _targets(history)
    place = _changed(uses, _is_in_place, rest=False)
    chosen = [one for one in uses if _is_chosen(*one) and isinstance(_index(one[1].node), ast.Name)]
    if place is not None or not chosen:
        return place or _changed(uses, _is_chosen)
    program, use = chosen[-1]
    index = _index(use.node)
    return program.place(_origin(program, index) if index is not None else use.node)


def size_place(history: History) -> Place | None:
    """The line that says how many examples there are."""
    for program, use in _inputs(history):
        if isinstance(use.node, ast.Call) and program.defined(use.node) is not None:
            for value in (*use.node.args, *(one.value for one in use.node.keywords)):
                number = _origin(program, value)
                if isinstance(number, ast.Constant) and type(number.value) is int:
                    return program.place(number)
    return _changed(_inputs(history), _is_cut)


def duplication_place(history: History) -> Place | None:
    """The line that repeats examples."""
    return _changed(_chosen_by(_inputs(history)), _is_repeated)


def order_place(history: History) -> Place | None:
    """The line that says in which order examples are drawn."""
    in_order = [one for one in history.loaders if one["sampler"] == "SequentialSampler"]
    if in_order:
        return setting_place(place_of(in_order[0]), "shuffle", 2, "DataLoader")
    return _changed(_chosen_by(_inputs(history)), _is_ordered)


def split_place(history: History) -> Place | None:
    """The line that chose the examples which are evaluated on."""
    uses = _evaluated(history)
    return _changed(uses[::-1], _is_chosen) if uses else None


def drawn_place(history: History) -> Place | None:
    """The line that augments examples."""
    uses = _inputs(history)
    for program, use in uses:
        if isinstance(use.node, ast.Call):
            value = argument(use.node, "transform") or argument(use.node, "transforms")
            if value is not None:
                return program.place(_origin(program, value))
    within = [one for one in uses if _function_name(*one) in ("__getitem__", "__iter__", "collate")]
    return _changed(within, _is_drawn, rest=False) or _changed(uses, _is_drawn)


def preprocessing_place(history: History) -> Place | None:
    """The line that changes inputs of the training and not of the evaluations, or the other way round."""
    trained, tested = _inputs(history), _evaluated(history)
    known = {use.node for _, use in tested}, {use.node for _, use in trained}
    for uses, other in zip((trained, tested), known, strict=True):
        own = [one for one in uses if one[1].node not in other]
        place = _changed(own, _is_scaled, _is_in_place, rest=False)
        if place is not None:
            return place
    return _changed(trained, _is_scaled, _is_tensor)


Step = tuple[Program, Use]


def _changed(
    uses: list[Step], *tests: Callable[[Program, Use], bool], rest: bool = True
) -> Place | None:
    """The first step that passes the first test that any passes; else the last but names."""
    for test in tests:
        for program, use in uses:
            if test(program, use):
                return program.place(use.node)
    made = [(p, u) for p, u in uses if not isinstance(u.node, ast.Name | ast.Constant)]
    return made[-1][0].place(made[-1][1].node) if rest and made else None


def _is_in_place(_: Program, use: Use) -> bool:
    return use.changes is not None


def _is_scaled(_: Program, use: Use) -> bool:
    if isinstance(use.node, ast.Call):
        return bool(_SCALES.fullmatch(last_name(use.node.func)))
    return isinstance(use.node, ast.BinOp | ast.AugAssign)


def _is_unsafe(_: Program, use: Use) -> bool:
    if isinstance(use.node, ast.Name | ast.Attribute | ast.Constant):
        return False
    words = re.findall(
        r"\b(?:nan|inf|log\d*|sqrt|full_like|zeros_like|zero_)\b", ast.unparse(use.node)
    )
    return bool(words)


def _is_tensor(_: Program, use: Use) -> bool:
    name = last_name(use.node) if isinstance(use.node, ast.Call) else ""
    return name in ("tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor", "ToTensor")


def _is_drawn(_: Program, use: Use) -> bool:
    names = [last_name(one.func) for one in ast.walk(use.node) if isinstance(one, ast.Call)]
    return any(_RANDOM.search(name.lower()) and "split" not in name for name in names)


def _is_chosen(program: Program, use: Use) -> bool:
    """Whether a step takes some of the examples, and not each in a loop."""
    if isinstance(use.node, ast.Call):
        return last_name(use.node.func) in ("train_test_split", "random_split", "Subset")
    inside = any(
        isinstance(one, ast.ListComp | ast.GeneratorExp)
        or (isinstance(one, Function) and one.name == "__getitem__")
        for one in program.around(use.node)
    )
    return (
        isinstance(_index(use.node), ast.Slice | ast.Name | ast.Call | ast.Compare) and not inside
    )


def _is_cut(_: Program, use: Use) -> bool:
    index = _index(use.node)
    return isinstance(index, ast.Slice) and isinstance(index.upper, ast.Constant)


def _is_repeated(_: Program, use: Use) -> bool:
    return isinstance(use.node, ast.Call) and bool(_REPEATS.match(last_name(use.node.func)))


def _is_ordered(_: Program, use: Use) -> bool:
    return isinstance(use.node, ast.Call) and bool(_ORDERS.fullmatch(last_name(use.node.func)))


def _index(node: ast.AST) -> ast.expr | None:
    return node.slice if isinstance(node, ast.Subscript) else None


def _function_name(program: Program, use: Use) -> str:
    function = program.function(use.node)
    return function.name if function else ""


def _chosen_by(uses: list[Step]) -> list[Step]:
    """The steps, and after each that takes some of the examples the steps of the numbers of these."""
    found = []
    for program, use in uses:
        found.append((program, use))
        index = _index(use.node)
        if isinstance(index, ast.Name | ast.Subscript | ast.Call | ast.Attribute):
            found += [(program, one) for one in program.lineage(Use(index, (), use.calls))]
    return found


def _inputs(history: History) -> list[Step]:
    """What the model was given in the training, back to where it came from."""
    found = _backward_loss(history)
    call = _model_call(*found) if found else None
    if found and call is not None and call[0].args:
        return _steps(history, found[0], Use(call[0].args[0], (), call[1]), 0)
    return _of_loader(history, 0)


def _targets(history: History) -> list[Step]:
    """What the loss was given to compare with, back to where it came from."""
    records = sorted(history.losses, key=lambda one: bool(one.get("evaluating")))
    place = next(map(place_of, records), None)
    program = parsed(place.path) if place else None
    calls = program.calls(place.line) if program and place else []
    starts = [(program, Use(call)) for call in calls if program]
    found = _backward_loss(history)
    if found is not None:
        starts += [(found[0], use) for use in _reached(*found) if isinstance(use.node, ast.Call)]
    for program, use in starts:
        call = use.node
        if isinstance(call, ast.Call) and len(call.args) + len(call.keywords) > 1:
            target = argument(call, "target", 1)
            output = argument(call, "input", 0)
            if target is not None and output is not None and _model_call(program, output):
                return _steps(history, program, Use(target, (), use.calls), 1)
    return _of_loader(history, 1)


def _evaluated(history: History) -> list[Step]:
    """What the model was given in the first evaluation, back to where it came from."""
    place = next((one.place for one in history.evaluations if one.place), None)
    program = parsed(place.path) if place else None
    for call in program.calls(place.line) if program and place else ():
        if program and _is_model(program, call) and call.args:
            return [(program, use) for use in program.lineage(Use(call.args[0]))]
    return []


def _steps(history: History, program: Program, use: Use, number: int) -> list[Step]:
    """The lineage of a value; where it ends at a parameter, as in a trainer's method, that of the loader."""
    found = [(program, one) for one in program.lineage(use)]
    last = found[-1][1].node
    if isinstance(last, ast.Name) and not any(isinstance(one.node, ast.Call) for _, one in found):
        return found + _of_loader(history, number)
    return found


def _of_loader(history: History, number: int) -> list[Step]:
    place = next(map(place_of, history.loaders), None)
    program = parsed(place.path) if place else None
    for call in reversed(program.calls(place.line)) if program and place else ():
        if program and "Loader" in last_name(call.func):
            return [(program, one) for one in program.lineage(Use(call, (EACH, number)))]
    return []


def _reached(program: Program, value: ast.expr) -> Iterator[Use]:
    """A value and what it was computed from, along all names, the nearest first."""
    waiting: list[Use] = [Use(value)]
    seen: set[ast.AST] = set()
    while waiting and len(seen) < 80:
        use = waiting.pop(0)
        if use.node in seen:
            continue
        seen.add(use.node)
        yield use
        for one in ast.walk(use.node):
            if isinstance(one, ast.Call) and one is not use.node:
                waiting.append(Use(one, (), use.calls))
            if isinstance(one, ast.Name):
                before = program.behind(Use(one, (), use.calls))
                waiting += [before] if before is not None else []


def _model_call(
    program: Program, value: ast.expr
) -> tuple[ast.Call, dict[ast.AST, ast.Call | int]] | None:
    """The call of a model that a value was computed with."""
    for use in _reached(program, value):
        if isinstance(use.node, ast.Call) and _is_model(program, use.node):
            return use.node, dict(use.calls)
    return None


def _is_model(program: Program, call: ast.Call) -> bool:
    """Whether what is called is an object of the program, and no loss."""
    name = last_name(call.func)
    if re.search(r"loss|criteri|objective|metric", name.lower()) or program.is_of_library(
        call.func
    ):
        return False
    if isinstance(call.func, ast.Attribute):
        is_own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
        return (is_own or name == "forward") and program.defined(call) is None
    if not isinstance(call.func, ast.Name) or program.defined(call) or program.class_of(call):
        return False
    made = _maker(program, call)
    return made is None or "Loss" not in last_name(made.func)
