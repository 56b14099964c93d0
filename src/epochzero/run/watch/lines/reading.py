"""What a reader of a training's source objects to: names that contradict what they are given for, and values whose ways part.

Each search reads one file, and needs no run: names of arguments against those of parameters, the mode of a schedule against the
metric that it watches, a mask against the one that divides, the order of inputs against that of their labels.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import chosen_by, inputs_of, targets_of
from epochzero.run.watch.lines.loss import loss_at, maker, reached
from epochzero.run.watch.lines.program import ParsedFile, Use, argument, last_name, parsed
from epochzero.run.watch.lines.settings import origin, place_of
from epochzero.run.watch.model import SourceLine

_ASYMMETRIC = re.compile(
    r"cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss|kl_div|KLDivLoss|BCE\w*Loss|(bce|nll|ce|kl)_?loss", re.I
)  # fmt: skip
_TARGET = re.compile(
    r"(^|_)(labels?|targets?|truths?|gt|y_?true|y|onehot|one_hot|teacher\w*)(_|$)", re.I
)
_OUTPUT = re.compile(
    r"(^|_)(preds?|predictions?|outputs?|logits?|scores?|probs?|y_?hat|y_?pred|recon\w*|student\w*)(_|$)", re.I
)  # fmt: skip
_POSITIVE = re.compile(r"(^|_)(pos|positives?|preferred|chosen|better|winner|clicked)(_|$)", re.I)
_NEGATIVE = re.compile(r"(^|_)(neg|negatives?|rejected|worse|loser|corrupted)(_|$)", re.I)
_TEMPERATURE = re.compile(r"^(temperature|temp|tau)$", re.I)
_NORMALIZES = ("cross_entropy", "softmax", "log_softmax", "logsumexp", "exp")
_FALLS = re.compile(r"loss|err(or)?s?$|perplexity|ppl|mae|mse|rmse|nll", re.I)
_GROWS = re.compile(r"acc(uracy)?|f1|auc|score|reward|iou|dice|map$|psnr|bleu|r2", re.I)
_REORDERS = re.compile(r"(rand)?perm(utation|uted)?|argsort|shuffle|roll|flip(ud)?")
_DISCOUNT = re.compile(r"^(gamma|discount(_factor)?)$", re.I)
_END = re.compile(r"done|termina|mask|end|final|alive|contin|last|over|live|trunc|absorb", re.I)
_RIVALS = (
    ({"g", "gen", "generator"}, {"d", "dis", "disc", "discriminator", "critic"}),
    ({"actor", "policy"}, {"critic", "value"}),
    ({"student"}, {"teacher"}),
    ({"encoder"}, {"decoder"}),
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OPTIMIZERS = re.compile(r"^(Adam\w*|SGD|RMSprop|Adagrad|Adadelta|NAdam|RAdam|Lion)$")


@dataclass(frozen=True, slots=True)
class Objection:
    """What a reader objects to: the fault, the reason, and the line."""

    fault: str
    text: str
    place: SourceLine


def objections(history: TrainingHistory) -> Iterator[Objection]:
    """All objections to the files that the training was seen in."""
    records = (*history.backwards, *history.losses, *history.optimizers)
    paths = dict.fromkeys(place.path for one in records if (place := place_of(one)) is not None)
    for path in list(paths)[:4]:
        if (program := parsed(path)) is not None:
            yield from objections_to(program)
    yield from _orders(history)
    for record in history.backwards:
        found = loss_at(place_of(record))
        if found is not None:
            yield from unended(*found)


def objections_to(program: ParsedFile) -> Iterator[Objection]:
    """The objections to a file that need no run of it."""
    for call in program.all_calls:
        yield from _exchanged(program, call)
        yield from _plateau(program, call)
    for node in program.nodes:
        if isinstance(node, ast.BinOp):
            yield from _masked(program, node)
            yield from _cooled(program, node)
        elif isinstance(node, ast.Assign):
            yield from _unpacked(program, node)
            yield from _of_rival(program, node)
            yield from _drawn_apart(program, node)


def _exchanged(program: ParsedFile, call: ast.Call) -> Iterator[Objection]:
    """Arguments that have each other's place, by their names."""
    names = [last_name(one) for one in call.args]
    if len(call.args) < 2 or any(isinstance(one, ast.Starred) for one in call.args):
        return
    made = maker(program, call)
    called = f"{last_name(call.func)} {last_name(made) if made is not None else ''}"
    first, second = names[:2]
    is_pair = re.search(r"margin_?ranking", called, re.I) is not None
    if _ASYMMETRIC.search(called) and program.defined(call) is None:
        swapped = (
            _TARGET.search(first) and _OUTPUT.search(second)
            and not _OUTPUT.search(first) and not _TARGET.search(second)
        )  # fmt: skip
        if swapped:
            text = (
                f"{last_name(call.func)} is given {first} as its input and {second} as its target."
            )
            yield Objection("loss_wrong", text, program.place(call))
    elif is_pair and _NEGATIVE.search(first) and _POSITIVE.search(second) and len(call.args) > 2:
        if "-" not in ast.unparse(call.args[2]) and not _is_negative(program, call.args[2]):
            text = f"With a target of 1 the loss ranks {first} above {second}."
            yield Objection("loss_wrong", text, program.place(call))
    elif re.search(r"triplet", called, re.I) and len(names) > 2:
        is_swapped = _NEGATIVE.search(names[1]) and _POSITIVE.search(names[2])
        if is_swapped:
            text = (
                f"{names[1]} is given as the positive example and {names[2]} as the negative one."
            )
            yield Objection("loss_wrong", text, program.place(call))
    function = program.defined(call)
    if function is None or not all(isinstance(one, ast.Name) for one in call.args):
        return
    parameters = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
    for (n, a), (m, b) in _pairs(names):
        if len(parameters) > m and a != b and (parameters[n], parameters[m]) == (b, a):
            others = [[last_name(x) for x in one.args] for one in program.calls_of(function)]
            if not any(len(one) > m and (one[n], one[m]) == (b, a) for one in others):
                text = f"{function.name} takes ({b}, {a}) and is given ({a}, {b})."
                yield Objection("loss_wrong", text, program.place(call))
                return


def _is_negative(program: ParsedFile, value: ast.expr) -> bool:
    return any("-" in ast.unparse(use.node) for use in reached(program, value))


def _pairs(names: list[str]) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    for n, one in enumerate(names):
        for m in range(n + 1, len(names)):
            yield (n, one), (m, names[m])


def _unpacked(program: ParsedFile, node: ast.Assign) -> Iterator[Objection]:
    """Results that are given each other's names."""
    target, call = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or not isinstance(call, ast.Call):
        return
    function = program.defined(call)
    if function is None or function.name == "__init__":
        made = maker(program, call)
        owner = program.class_of(made) if made is not None else None
        function = program.method(owner, "forward") if owner is not None else None
    inside = ast.walk(function) if function is not None else ()
    returns = [n for n in inside if isinstance(n, ast.Return) and program.function(n) is function]
    if len(returns) != 1 or not isinstance(returns[0].value, ast.Tuple):
        return
    given = [last_name(one) for one in target.elts]
    returned = [last_name(one) for one in returns[0].value.elts]
    for (n, a), (m, b) in _pairs(given):
        if (
            len(returned) == len(given)
            and a
            and b
            and a != b
            and (returned[n], returned[m]) == (b, a)
        ):
            text = f"The results ({b}, {a}) are stored as ({a}, {b})."
            yield Objection("loss_wrong", text, program.place(node))
            return


def _plateau(program: ParsedFile, call: ast.Call) -> Iterator[Objection]:
    """A schedule that waits for a loss to grow, or for an accuracy to fall."""
    if (
        last_name(call.func) != "step"
        or len(call.args) != 1
        or not isinstance(call.func, ast.Attribute)
    ):
        return
    value = call.func.value
    made = next((u.node for u in program.lineage(Use(value)) if isinstance(u.node, ast.Call)), None)
    if made is None or last_name(made.func) != "ReduceLROnPlateau":
        return
    given = argument(made, "mode", 1)
    mode = origin(program, given) if given is not None else ast.Constant("min")
    metric, name = call.args[0], last_name(call.args[0])
    if isinstance(metric, ast.UnaryOp) or not isinstance(mode, ast.Constant):
        return
    falls, grows = bool(_FALLS.search(name)), bool(_GROWS.search(name))
    if (mode.value == "max" and falls and not grows) or (
        mode.value == "min" and grows and not falls
    ):
        text = f"ReduceLROnPlateau has the mode {mode.value}, and watches {name}: the rate falls while training goes well."
        yield Objection("schedule_wrong", text, program.place(made))


def _masked(program: ParsedFile, node: ast.BinOp) -> Iterator[Objection]:
    """A sum over what a mask excludes, divided by how much it includes."""
    if not isinstance(node.op, ast.Div):
        return
    summed, counted = _summed(node.left), _summed(node.right)
    if not isinstance(counted, ast.Name | ast.Attribute) or summed is None:
        return
    name = ast.unparse(counted)
    opposites = {
        f"1 - {name}",
        f"1.0 - {name}",
        f"~{name}",
        f"{name}.logical_not()",
        f"torch.logical_not({name})",
    }
    factors = {ast.unparse(_bare(one)) for one in _factors(summed)}
    if factors & opposites and name not in factors:
        text = f"The sum is over what {name} excludes, and is divided by what it includes."
        yield Objection("loss_wrong", text, program.place(node))


def _summed(node: ast.expr) -> ast.expr | None:
    """What is summed up; below a limit or an added constant."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "sum":
            of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
            return node.args[0] if of_torch and node.args else node.func.value
        if node.func.attr not in ("clamp", "clamp_min", "float", "maximum", "max", "item"):
            return None
        node = node.func.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _summed(node.left)
    return None


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _bare(node: ast.expr) -> ast.expr:
    """Without conversions of its kind or shape."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in ("float", "unsqueeze", "to", "view", "squeeze", "reshape"):
            break
        node = node.func.value
    return node.value if isinstance(node, ast.Subscript) else node


def _cooled(program: ParsedFile, node: ast.BinOp) -> Iterator[Objection]:
    """Scores that are multiplied by a temperature below 1."""
    around = next(program.around(node), None)
    if not isinstance(node.op, ast.Mult) or isinstance(around, ast.BinOp):
        return
    for factor in (node.left, node.right):
        value = origin(program, factor) if _TEMPERATURE.match(last_name(factor)) else None
        if (
            not isinstance(value, ast.Constant)
            or not isinstance(value.value, float)
            or not 0 < value.value < 1
        ):
            continue
        for one in program.around(node):
            is_argument = isinstance(one, ast.Call) and last_name(one.func) in _NORMALIZES
            stored = last_name(one.targets[0]) if isinstance(one, ast.Assign) else ""
            is_stored = bool(stored) and any(
                last_name(call.func) in _NORMALIZES
                and stored in [last_name(argument) for argument in call.args[:1]]
                for call in program.all_calls
            )
            if is_argument or is_stored:
                text = f"Scores are multiplied by {last_name(factor)} ({value.value:g}): a temperature divides them."
                yield Objection("loss_wrong", text, program.place(node))
                return
            if isinstance(one, ast.stmt):
                return


def _of_rival(program: ParsedFile, node: ast.Assign) -> Iterator[Objection]:
    """An optimizer that has the name of one network and the parameters of its rival."""
    call = node.value
    if (
        not isinstance(call, ast.Call)
        or not _OPTIMIZERS.match(last_name(call.func))
        or not call.args
    ):
        return
    own, given = _words(last_name(node.targets[0])), _words(ast.unparse(call.args[0]))
    for pair in _RIVALS:
        for side, rival in (pair, pair[::-1]):
            if own & side and not own & rival and given & rival and not given & side:
                text = f"{last_name(node.targets[0])} is given {ast.unparse(call.args[0])[:60]}."
                yield Objection("parameters_frozen", text, program.place(call))
                return


def _words(text: str) -> set[str]:
    return {one.lower() for one in _WORDS.findall(text)}


def _drawn_apart(program: ParsedFile, node: ast.Assign) -> Iterator[Objection]:
    """Arrays that are put in order by two different draws in one statement."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return
    own = zip(target.elts, value.elts, strict=False)
    parts = [
        v for t, v in own if isinstance(v, ast.Subscript) and last_name(t) == last_name(v.value)
    ]
    drawn = [any(map(_is_draw, ast.walk(one.slice))) for one in parts]
    indices = {ast.unparse(one.slice) for one in parts}
    if len(parts) > 1 and (sum(drawn) > 1 or (any(drawn) and len(indices) > 1)):
        text = f"{ast.unparse(target)} are put in different orders: labels no longer belong to their inputs."
        yield Objection("labels_wrong", text, program.place(node))


def _is_draw(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and re.fullmatch(r"(rand)?perm(utation)?", last_name(node.func)) is not None
    )


def _orders(history: TrainingHistory) -> Iterator[Objection]:
    """Inputs that are put in another order than their labels."""
    inputs, targets = chosen_by(inputs_of(history)), chosen_by(targets_of(history))
    if not inputs or not targets:
        return
    reordered = [
        {use.node: program for program, use in uses if _reorders(program, use.node)}
        for uses in (inputs, targets)
    ]
    for own, other in (reordered, reordered[::-1]):
        apart = [node for node in own if node not in other]
        shared = {u.node for _, u in inputs if isinstance(u.node, ast.Call)} & {
            u.node for _, u in targets
        }
        if apart and shared and own is not other:
            what = "inputs" if own is reordered[0] else "labels"
            text = f"Only the {what} are put in the order of {ast.unparse(apart[0])[:60]}: labels do not belong to their inputs."
            yield Objection("labels_wrong", text, own[apart[0]].place(apart[0]))
            return


def _reorders(program: ParsedFile, node: ast.AST) -> bool:
    """Whether a call puts examples in another order, which are in the first dimension."""
    if not isinstance(node, ast.Call) or not _REORDERS.fullmatch(last_name(node.func)):
        return False
    if last_name(node.func) not in ("roll", "flip"):
        return True
    given = [ast.unparse(one) for one in (*node.args, *(one.value for one in node.keywords))]
    return given[-1:] in (["0"], ["(0,)"], ["[0]"])


def unended(program: ParsedFile, loss: ast.expr) -> list[Objection]:
    """A value of the next state that counts though the episode is over."""
    target = bootstrapped(program, loss)
    if target is None:
        return []
    names = {last_name(n) for n in program.nodes if isinstance(n, ast.Name | ast.Attribute)}
    known = [name for name in names if re.match(r"^(dones?|terminals?|terminated)$", name, re.I)]
    used = (last_name(n) for use in reached(program, target) for n in ast.walk(use.node))
    if known and not any(_END.search(name) for name in used):
        text = (
            f"The target adds the discounted value of the next state also where {known[0]} is true."
        )
        return [Objection("loss_wrong", text, program.place(target))]
    return []


def bootstrapped(program: ParsedFile, loss: ast.expr) -> ast.BinOp | None:
    """The sum of a reward and a discounted value of the next state that a loss was computed from."""
    for use in reached(program, loss):
        for node in ast.walk(use.node):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                factors = [one for side in (node.left, node.right) for one in _factors(side)]
                if any(_DISCOUNT.match(last_name(one)) for one in factors):
                    return node
    return None


def bootstrapped_place(history: TrainingHistory) -> SourceLine | None:
    """The line of the target that a loss was given, if it adds a discounted value."""
    for record in history.backwards:
        found = loss_at(place_of(record))
        target = bootstrapped(*found) if found is not None else None
        if found is not None and target is not None:
            return found[0].place(target)
    return None
