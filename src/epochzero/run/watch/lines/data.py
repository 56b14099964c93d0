"""Which line made the data what they are, followed back from where the model and the loss are given them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.loss import backward_loss, is_model, loss_place, model_call, reached
from epochzero.run.watch.lines.program import (
    EACH,
    Function,
    ParsedFile,
    Use,
    argument,
    last_name,
    parsed,
)
from epochzero.run.watch.lines.settings import CONVERSIONS, origin, place_of, setting_place
from epochzero.run.watch.model import SourceLine

_SCALES = re.compile(r"log\d*p?|exp|sqrt|transform|normalize|standardi[sz]e|scale|fit_transform|clip|clamp|div_?|mul_?|sub_?|add_?")  # fmt: skip
_RANDOM = re.compile(r"rand|permut|shuffle|noise|flip|roll|rotat|crop|jitter|mix|choice|erase|cutout|augment|transform")  # fmt: skip
_REPEATS = re.compile(r"repeat|tile|expand|choices?|randint|cycle|cat|concatenate")
_ORDERS = re.compile(r"arange|range|argsort|sort|sorted|linspace")
_CONVERSIONS = (
    *CONVERSIONS, "long", "float", "flatten", "view", "reshape", "contiguous", "transpose", "squeeze", "unsqueeze",
)  # fmt: skip
_ADDS = re.compile(
    r"(rand|randn|normal)_like|noise|corrupt|degrade|(add|mul|masked_fill|index_fill)_$"
)
_IN_PLACE = re.compile(r"[a-z]_$")
_NAMES = (("input_ids", "inputs", "x"), ("labels", "label", "targets", "target", "y"))
"""Keys of a batch."""
Step = tuple[ParsedFile, Use]


def input_place(history: TrainingHistory) -> SourceLine | None:
    """The line that last changed the numbers of the inputs, else where they became tensors or came from."""
    return _changed(inputs_of(history), _is_unsafe, _is_in_place, _is_scaled, _is_tensor)


def label_place(history: TrainingHistory, *, order: bool = False) -> SourceLine | None:
    """The line that last changed the numbers of the labels; of their order, that last drew or chose them."""
    uses = targets_of(history)
    if order:
        return _changed(uses, _is_drawn, _is_in_place, _is_scaled, rest=False) or _changed(
            uses[::-1], _is_chosen
        )
    return _changed(uses, _is_scaled, _is_in_place, _is_tensor)


def target_place(history: TrainingHistory) -> SourceLine | None:
    """The line that made the target of the loss, before changes of its shape, kind or device."""
    return _changed(targets_of(history), _is_made)


def classes_place(history: TrainingHistory) -> SourceLine | None:
    """The line that chose which examples there are of each class."""
    uses = targets_of(history)
    place = _changed(uses, _is_in_place, rest=False)
    chosen = [p for p in uses if _is_chosen(*p) and isinstance(_index(p[1].node), ast.Name)]
    if place is not None or not chosen:
        return place or _changed(uses, _is_chosen)
    program, use = chosen[-1]
    index = _index(use.node)
    return program.place(origin(program, index) if index is not None else use.node)


def size_place(history: TrainingHistory) -> SourceLine | None:
    """The line that says how many examples there are."""
    for program, use in inputs_of(history):
        if isinstance(use.node, ast.Call) and program.defined(use.node) is not None:
            for value in (*use.node.args, *(keyword.value for keyword in use.node.keywords)):
                number = origin(program, value)
                if isinstance(number, ast.Constant) and type(number.value) is int:
                    return program.place(number)
    return _changed(inputs_of(history), _is_cut)


def duplication_place(history: TrainingHistory) -> SourceLine | None:
    """The line that repeats examples."""
    return _changed(chosen_by(inputs_of(history)), _is_repeated)


def order_place(history: TrainingHistory) -> SourceLine | None:
    """The line that says in which order examples are drawn."""
    in_order = [loader for loader in history.loaders if loader["sampler"] == "SequentialSampler"]
    if in_order:
        return setting_place(place_of(in_order[0]), "shuffle", 2, "DataLoader")
    return _changed(chosen_by(inputs_of(history)), _is_ordered)


def split_place(history: TrainingHistory) -> SourceLine | None:
    """The line that chose the examples which are evaluated on."""
    uses = _evaluated(history)
    return _changed(uses[::-1], _is_chosen) if uses else None


def drawn_place(history: TrainingHistory) -> SourceLine | None:
    """The line that augments examples."""
    uses = inputs_of(history)
    for program, use in uses:
        if isinstance(use.node, ast.Call):
            value = argument(use.node, "transform") or argument(use.node, "transforms")
            if value is not None:
                return program.place(origin(program, value))
    within = [p for p in uses if _function_name(*p) in ("__getitem__", "__iter__", "collate")]
    return _changed(within, _is_drawn, rest=False) or _changed(uses, _is_drawn)


def noise_place(history: TrainingHistory) -> SourceLine | None:
    """Of a model whose input gets noise in the loop of its training: the line that adds it in place, else that of the loss."""
    found = backward_loss(history)
    call = model_call(*found) if found else None
    if found is None or call is None or not call[0].args:
        return None
    program, loss = found
    loops = [n for n in program.around(loss) if isinstance(n, ast.For | ast.While | Function)]
    for use in reached(program, call[0].args[0]):
        name = last_name(use.node) if isinstance(use.node, ast.Call) else ""
        if _ADDS.search(name) and loops[:1] and loops[0] in program.around(use.node):
            outer = [use.node, *program.around(use.node)]
            calls = (node for node in outer if isinstance(node, ast.Call))
            changed = next((node for node in calls if _IN_PLACE.search(last_name(node.func))), None)
            return program.place(changed) if changed is not None else loss_place(history)
    return None


def masking_place(softmax: SourceLine | None) -> SourceLine | None:
    """The line that masks scores before their softmax, in the same function."""
    program = parsed(softmax.path) if softmax else None
    for call in reversed(program.all_calls) if program else ():
        if program and softmax and last_name(call.func) in ("masked_fill", "masked_fill_"):
            function = program.function(call)
            within = function and function.lineno <= softmax.line <= (function.end_lineno or 0)
            if within and call.lineno <= softmax.line:
                return program.place(call)
    return None


def mask_place(history: TrainingHistory) -> SourceLine | None:
    """The line that made the mask of what is padding: of the last comparison or value that has its name."""
    place = next(map(place_of, (*history.backwards, *history.losses)), None)
    program = parsed(place.path) if place else None
    found = None
    for node in program.nodes if program else ():
        pairs: list[tuple[ast.AST | str | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.keyword):
            pairs = [(node.arg, node.value)]
        elif isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
        for key, value in pairs:
            name = str(key.value) if isinstance(key, ast.Constant) else key
            name = last_name(name) if isinstance(name, ast.AST) else str(name)
            named = ast.Name | ast.Constant | ast.Attribute
            if "mask" in name and not isinstance(_unconverted(value), named):
                found = value
    return program.place(found) if program and found is not None else None


def _unconverted(value: ast.expr) -> ast.expr:
    while isinstance(value, ast.Call) and last_name(value.func) in CONVERSIONS and value.args:
        value = value.args[0]
    return value


def preprocessing_place(history: TrainingHistory) -> SourceLine | None:
    """The line that changes inputs of the training and not of the evaluations, or the other way round."""
    trained, tested = inputs_of(history), _evaluated(history)
    known = {use.node for _, use in tested}, {use.node for _, use in trained}
    for uses, other in zip((trained, tested), known, strict=True):
        own = [use for use in uses if use[1].node not in other]
        place = _changed(own, _is_scaled, _is_in_place, rest=False)
        if place is not None:
            return place
    return _changed(trained, _is_scaled, _is_tensor)


def _changed(
    uses: list[Step], *tests: Callable[[ParsedFile, Use], bool], rest: bool = True
) -> SourceLine | None:
    """The first step that passes the first test that any passes; else the last but names."""
    for test in tests:
        for program, use in uses:
            if test(program, use):
                return program.place(use.node)
    made = [(p, u) for p, u in uses if not isinstance(u.node, ast.Name | ast.Constant)]
    return made[-1][0].place(made[-1][1].node) if rest and made else None


def _is_made(program: ParsedFile, use: Use) -> bool:
    if isinstance(use.node, ast.Call):
        return last_name(use.node.func) not in _CONVERSIONS and program.defined(use.node) is None
    return isinstance(use.node, ast.Subscript) and not isinstance(use.node.slice, ast.Constant)


def _is_in_place(_: ParsedFile, use: Use) -> bool:
    return use.changes is not None


def _is_scaled(_: ParsedFile, use: Use) -> bool:
    if isinstance(use.node, ast.Call):
        return bool(_SCALES.fullmatch(last_name(use.node.func)))
    return isinstance(use.node, ast.BinOp | ast.AugAssign)


def _is_unsafe(_: ParsedFile, use: Use) -> bool:
    if isinstance(use.node, ast.Name | ast.Attribute | ast.Constant):
        return False
    words = re.findall(
        r"\b(?:nan|inf|log\d*|sqrt|full_like|zeros_like|zero_)\b", ast.unparse(use.node)
    )
    return bool(words)


def _is_tensor(_: ParsedFile, use: Use) -> bool:
    name = last_name(use.node) if isinstance(use.node, ast.Call) else ""
    return name in ("tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor", "ToTensor")


def _is_drawn(_: ParsedFile, use: Use) -> bool:
    names = [last_name(node.func) for node in ast.walk(use.node) if isinstance(node, ast.Call)]
    return any(_RANDOM.search(name.lower()) and "split" not in name for name in names)


def _is_chosen(program: ParsedFile, use: Use) -> bool:
    """Whether a step takes some of the examples, and not each in a loop."""
    if isinstance(use.node, ast.Call):
        return last_name(use.node.func) in ("train_test_split", "random_split", "Subset")
    inside = any(
        isinstance(node, ast.ListComp | ast.GeneratorExp)
        or (isinstance(node, Function) and node.name == "__getitem__")
        for node in program.around(use.node)
    )
    return (
        isinstance(_index(use.node), ast.Slice | ast.Name | ast.Call | ast.Compare) and not inside
    )


def _is_cut(_: ParsedFile, use: Use) -> bool:
    index = _index(use.node)
    return isinstance(index, ast.Slice) and isinstance(index.upper, ast.Constant)


def _is_repeated(_: ParsedFile, use: Use) -> bool:
    return isinstance(use.node, ast.Call) and bool(_REPEATS.match(last_name(use.node.func)))


def _is_ordered(_: ParsedFile, use: Use) -> bool:
    return isinstance(use.node, ast.Call) and bool(_ORDERS.fullmatch(last_name(use.node.func)))


def _index(node: ast.AST) -> ast.expr | None:
    return node.slice if isinstance(node, ast.Subscript) else None


def _function_name(program: ParsedFile, use: Use) -> str:
    function = program.function(use.node)
    return function.name if function else ""


def chosen_by(uses: list[Step]) -> list[Step]:
    """The steps, and after each that takes some of the examples the steps of the numbers of these."""
    found = []
    for program, use in uses:
        found.append((program, use))
        index = _index(use.node)
        if isinstance(index, ast.Name | ast.Subscript | ast.Call | ast.Attribute):
            found += [(program, u) for u in program.lineage(Use(index, (), use.calls))]
    return found


def inputs_of(history: TrainingHistory) -> list[Step]:
    """What the model was given in the training, back to where it came from."""
    found = backward_loss(history)
    call = model_call(*found) if found else None
    if found and call is not None and call[0].args:
        return _steps(history, found[0], Use(call[0].args[0], (), call[1]), 0)
    return _of_loader(history, 0)


def targets_of(history: TrainingHistory) -> list[Step]:
    """What the loss was given to compare with, back to where it came from."""
    records = sorted(history.losses, key=lambda loss: bool(loss.get("evaluating")))
    place = next(map(place_of, records), None)
    program = parsed(place.path) if place else None
    calls = program.calls(place.line) if program and place else []
    starts = [(program, Use(call)) for call in calls if program]
    found = backward_loss(history)
    if found is not None:
        starts += [(found[0], use) for use in reached(*found) if isinstance(use.node, ast.Call)]
    for program, use in starts:
        call = use.node
        if isinstance(call, ast.Call) and len(call.args) + len(call.keywords) > 1:
            target = argument(call, "target", 1)
            output = argument(call, "input", 0)
            if target is not None and output is not None and model_call(program, output):
                return _steps(history, program, Use(target, (), use.calls), 1)
    return _of_loader(history, 1)


def _evaluated(history: TrainingHistory) -> list[Step]:
    """What the model was given in the first evaluation, back to where it came from."""
    place = next((evaluation.place for evaluation in history.evaluations if evaluation.place), None)
    program = parsed(place.path) if place else None
    for call in program.calls(place.line) if program and place else ():
        if program and is_model(program, call) and call.args:
            return [(program, use) for use in program.lineage(Use(call.args[0]))]
    return []


def _steps(history: TrainingHistory, program: ParsedFile, use: Use, number: int) -> list[Step]:
    """The lineage of a value; where it ends at a parameter, as in a trainer's method, that of the loader."""
    found = [(program, step) for step in program.lineage(use)]
    last = found[-1][1].node
    if isinstance(last, ast.Name) and not any(isinstance(u.node, ast.Call) for _, u in found):
        return found + _of_loader(history, number)
    return found


def _collated(program: ParsedFile, loader: ast.Call, number: int) -> ast.expr | None:
    """What a function that collates batches returns as inputs or labels, if it names them."""
    collate = argument(loader, "collate_fn")
    for function in program.nodes:
        if isinstance(function, Function) and collate and function.name == last_name(collate):
            ends = [end.value for end in ast.walk(function) if isinstance(end, ast.Return)]
            for end in ends:
                pairs = zip(end.keys, end.values, strict=True) if isinstance(end, ast.Dict) else ()
                named = {k.value: v for k, v in pairs if isinstance(k, ast.Constant)}
                return next((named[name] for name in _NAMES[number] if name in named), None)
    return None


def _of_loader(history: TrainingHistory, number: int) -> list[Step]:
    place = next(map(place_of, history.loaders), None)
    program = parsed(place.path) if place else None
    for call in reversed(program.calls(place.line)) if program and place else ():
        entry = _collated(program, call, number) if program else None
        if program and entry is not None:
            return [(program, use) for use in program.lineage(Use(entry))]
        if program and "Loader" in last_name(call.func):
            return [(program, use) for use in program.lineage(Use(call, (EACH, number)))]
        given = argument(call, "xy"[number], number)
        if program and last_name(call.func) == "fit" and given is not None:
            return [(program, use) for use in program.lineage(Use(given))]
    return []
