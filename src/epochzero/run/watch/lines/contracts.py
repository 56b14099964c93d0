"""What each statement of a training loop must do, as a reader of the source checks it: parsed, never run.

`CONTRACTS` is the table. A contract belongs to a role of the loop (its data, loss, optimizer, schedule or state); its search gets
the file and yields the statements that break it, each with the reason. Where a contract needs what a statement is executed for,
`repeated` has the functions that run for each batch or example of the training.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, islice, takewhile
from operator import is_not
from typing import Any

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import chosen_by, inputs_of, targets_of
from epochzero.run.watch.lines.loss import maker, minimized, reached, returned_loss, sources
from epochzero.run.watch.lines.program import (
    Function,
    ParsedFile,
    Use,
    argument,
    last_name,
    names_in,
)
from epochzero.run.watch.lines.settings import constant, origin
from epochzero.run.watch.model import SourceLine

Broken = Iterator[tuple[str, ast.AST]]
"""The reasons why statements break a contract, each with the statement."""

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
_REORDERS = re.compile(r"(rand)?perm(utation|uted)?|argsort|shuffle|roll|flip(ud)?")
_DISCOUNT = re.compile(r"^(gamma|discount(_factor)?)$", re.I)
_LEAST_DISCOUNT = 0.8
_REWARD = re.compile(r"(^|_)(r|rs|rews?|rewards?)(_|$)", re.I)
_END = re.compile(r"done|termina|mask|end|final|alive|contin|last|over|live|trunc|absorb", re.I)
_GOES_ON = re.compile(r"mask|not_?done|non_?(final|terminal)|contin|alive", re.I)
_DONE = re.compile(r"^(dones?|terminals?|terminated)$", re.I)
_RIVALS = (
    ({"g", "gen", "generator"}, {"d", "dis", "disc", "discriminator", "critic"}),
    ({"actor", "policy"}, {"critic", "value"}),
    ({"student"}, {"teacher"}),
    ({"encoder"}, {"decoder"}),
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OPTIMIZERS = re.compile(r"^(Adam\w*|SGD|RMSprop|Adagrad|Adadelta|NAdam|RAdam|Lion)$")
_SEEDED = re.compile(r"^(default_rng|RandomState|manual_seed|seed|Random)$")
_CONFIGURATION = re.compile(r"^(self|args?|cfg|conf(ig)?|opts?|settings|hparams|params)$", re.I)
_FITS = re.compile(
    r"^(fit|build|learn|make|create)_\w*(codes?|vocab\w*|scaler|statistics|stats|encoder|mapping|bins|categories)$"
)
_NOT_TRAINED = re.compile(
    r"eval|valid|(^|_)val(_|$)|test|generat|predict|plot|visual|infer|demo", re.I
)
_MOVES = re.compile(
    r"^(h|v|random_?)?(flip(ud|lr)?|rot90|rotate|crop(_resize)?|affine|perspective|elastic\w*|roll|warp\w*)$",
    re.I,
)
_LOCATED = re.compile(
    r"mask|seg|depth|(^|_)b?box|keypoint|landmark|heat|flow|disparity|contour", re.I
)
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|test|dev|holdout)(_|$)", re.I)
_CLEARS = re.compile(
    r"zero_grad|\.grad\s*=(?!=)|grad(\.data)?\.(zero_|fill_|copy_)|clear_grad|\bdel .*\.grad\b"
)
_ITEMS = ("__getitem__", "__getitems__", "__iter__", "collate", "collate_fn")
_CUTS = ("detach", "item", "tolist", "numpy", "detach_")


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract of a training loop.

    Attributes:
        fault: what a violation is, a word of the taxonomy.
        broken: yields violations in a file.
        fix: what to do about one.
    """

    fault: str
    broken: Callable[[ParsedFile], Broken]
    fix: str


def violations(history: TrainingHistory, contract: Contract) -> Iterator[tuple[str, SourceLine]]:
    """The violations in the files that the training was seen in."""
    for program in sources(history)[:4]:
        for text, node in _violations(program, contract):
            yield text, program.place(node)


@lru_cache(maxsize=1024)
def _violations(program: ParsedFile, contract: Contract) -> tuple[tuple[str, ast.AST], ...]:
    # Of a file that is read at each moment of a training nothing changes.
    return tuple(contract.broken(program))


@lru_cache(maxsize=64)
def repeated(program: ParsedFile) -> frozenset[ast.AST]:
    """Functions that run for each batch or example of the training, and the loops over its batches."""
    found: set[ast.AST] = set()
    waiting: list[ast.AST] = [
        node for node in program.nodes if isinstance(node, Function) and node.name in _ITEMS
    ]
    for loss in _losses(program):
        kinds = ast.For | ast.While | Function
        around = (outer for outer in program.around(loss) if isinstance(outer, kinds))
        inner = next(around, None)
        is_looped = (
            not isinstance(inner, Function)
            or inner.name in ("training_step", "compute_loss", "train_step")
            or any(
                isinstance(outer, ast.For | ast.While)
                for call in program.calls_of(inner)
                for outer in program.around(call)
            )
        )
        waiting += [inner] if inner is not None and is_looped else []
    while waiting:
        node = waiting.pop()
        if node in found or (isinstance(node, Function) and _NOT_TRAINED.search(node.name)):
            continue
        found.add(node)
        for call in ast.walk(node):
            called = program.defined(call) if isinstance(call, ast.Call) else None
            if called is not None and called.name != "__init__" and not _is_aside(program, call):
                waiting.append(called)
    return frozenset(found)


def _is_aside(program: ParsedFile, node: ast.AST) -> bool:
    """Whether a node runs without gradients, or in some iterations only: a measurement, not the training."""
    for outer in program.around(node):
        if isinstance(outer, Function):
            return False
        if isinstance(outer, ast.With) and re.search(
            r"no_grad|inference_mode", ast.unparse(outer.items[0])
        ):
            return True
        if isinstance(outer, ast.If) and "%" in ast.unparse(outer.test):
            return True
    return False


def _losses(program: ParsedFile) -> list[ast.expr]:
    """What the file minimizes: each expression whose gradients are asked for, or that a training step returns."""
    found = [loss for call in program.all_calls if (loss := minimized(call)) is not None]
    return found or list(returned_loss(program))


# -- Data ---------------------------------------------------------------------------------------


def _drawn_alike(program: ParsedFile, call: ast.Call) -> Broken:
    """A random generator that begins with the same seed for each batch or example."""
    within = repeated(program)
    name = last_name(call.func)
    if not _SEEDED.match(name) or not call.args:
        return
    around = (o for o in program.around(call) if o in within or isinstance(o, Function))
    enclosing = next(around, None)
    alike = _is_constant_seed(program, call.args[0])
    if enclosing in within and alike and not _is_aside(program, call):
        text = f"{ast.unparse(call)[:60]} runs again for each batch or example: all random draws after it are the same."
        yield text, call


def _is_constant_seed(program: ParsedFile, given: ast.expr) -> bool:
    """Whether a seed is a number, or a setting named so that nothing changes after it was made."""
    if type(constant(program, given)) is int:
        return True
    if not isinstance(given, ast.Attribute) or not given.attr.endswith("seed"):
        return False
    owner = ast.unparse(given).partition(".")[0]
    stores = [
        node
        for node in program.nodes
        if isinstance(node, ast.Attribute | ast.Name) and last_name(node) == given.attr
        and isinstance(node.ctx, ast.Store)
    ]  # fmt: skip
    return bool(_CONFIGURATION.match(owner)) and not any(
        (function := program.function(store)) is not None and function.name != "__init__"
        for store in stores
    )


def _moved_alone(program: ParsedFile) -> Broken:
    """An image that is moved while what is located in it stays where it was."""
    for function in (node for node in program.nodes if isinstance(node, Function)):
        names = names_in(function)
        located = {name for name in names if _LOCATED.search(name)}
        moves = [
            node for node in ast.walk(function) if isinstance(node, ast.Assign) and _is_moved(node)
        ]
        if not located or not moves or any(_LOCATED.search(ast.unparse(move)) for move in moves):
            continue
        returned = [
            end
            for end in ast.walk(function)
            if isinstance(end, ast.Return) and isinstance(end.value, ast.Tuple)
        ]
        for move in moves:
            name = last_name(move.targets[0])
            for end in returned:
                given = names_in(end)
                if name in given and given & located:
                    yield f"{name} is moved and {', '.join(sorted(given & located))} is not.", move
                    return


def _is_moved(node: ast.Assign) -> bool:
    """Whether a statement moves the content of what it names."""
    call = node.value
    moved = isinstance(call, ast.Call) and bool(_MOVES.match(last_name(call.func)))
    return moved and last_name(node.targets[0]) in names_in(call)


def _fitted_twice(program: ParsedFile) -> Broken:
    """A scaler, an encoder or a vocabulary that is fitted to the evaluation data as well, by a method or a function."""
    first: dict[str, ast.Call] = {}
    for call in program.all_calls:
        by_function = isinstance(call.func, ast.Name) and bool(_FITS.match(call.func.id))
        fitted = call.func if by_function else getattr(call.func, "value", None)
        is_fit = by_function or last_name(call.func) in ("fit_transform", "fit")
        if not call.args or not is_fit or fitted is None:
            continue
        owner, given = ast.unparse(fitted), ast.unparse(call.args[0])
        if _HELD_OUT.search(given.split("[")[0].split(".")[-1]) and owner in first:
            text = f"{owner} is fitted to {given[:40]} after it was fitted to the training data."
            yield text, call
        elif by_function or last_name(call.func) == "fit_transform":
            first[owner] = call


# -- Loss ---------------------------------------------------------------------------------------


def _summed_forward(program: ParsedFile, loop: ast.For) -> Broken:
    """Discounted returns that are summed up from the first step on: an action is credited with what came before it."""
    if re.search(r"revers|\[::-1\]|, -1\)|flip", ast.unparse(loop.iter)):
        return
    items = names_in(loop.target)
    for node in loop.body:
        match node:
            case ast.Assign(targets=[target, *_], value=ast.BinOp(left, ast.Add(), right)):
                sides = ((last_name(target), left, right), (last_name(target), right, left))
            case _:
                continue
        for own, side, other in sides:
            factors = {last_name(part) for part in _factors(side)}
            added = ast.unparse(other)
            if (
                own
                and own in factors
                and any(_DISCOUNT.match(part) for part in factors)
                and (items & {last_name(n) for n in ast.walk(other)})
                and not ("[" in added and "+ 1" in added)
            ):
                text = f"{own} is discounted forward in time: each step is credited with the rewards before it."
                yield text, loop


def _constant_terms(program: ParsedFile) -> Broken:
    """A term of the loss that is cut off from the model: nothing learns from it."""
    for loss in _losses(program):
        for term in _added(program, loss):
            names = [
                n for n in ast.walk(term) if isinstance(n, ast.Name) and not _is_plain(program, n)
            ]
            if names and all(_is_cut(program, name, term) for name in names):
                text = f"{ast.unparse(term)[:60]} is cut off from the model: this term of the loss has no gradient."
                yield text, term


def _added(program: ParsedFile, loss: ast.expr) -> Iterator[ast.expr]:
    """The terms of a sum, each back to the statement that computed it, without constant factors."""
    waiting, seen = [(loss, False)], 0
    while waiting and (seen := seen + 1) < 40:
        node, is_term = waiting.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            waiting += [(node.left, True), (node.right, True)]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            tensors = [factor for factor in (node.left, node.right) if any(
                isinstance(n, ast.Name) and not _is_plain(program, n) for n in ast.walk(factor)
            )]  # fmt: skip
            if len(tensors) == 1:
                waiting.append((tensors[0], is_term))
            elif is_term:
                yield node
        elif isinstance(node, ast.Name):
            before = program.behind(Use(node))
            if (
                before is not None
                and before.changes is None
                and not before.path
                and isinstance(before.node, ast.expr)
            ):
                waiting.append((before.node, is_term))
        elif is_term:
            yield node


def _is_plain(program: ParsedFile, name: ast.Name) -> bool:
    """Whether a name is a module, a function or a number."""
    if program.is_of_library(name) or name.id.isupper() or name.id in program.function_names:
        return True
    return isinstance(origin(program, name), ast.Constant)


def _is_cut(program: ParsedFile, name: ast.Name, term: ast.expr) -> bool:
    for outer in program.around(name):
        if isinstance(outer, ast.Attribute) and outer.attr in (*_CUTS, "data"):
            return True
        if outer is term:
            break
    return False


def _fakes_alike(program: ParsedFile) -> Broken:
    """A generator that is trained toward the label that its discriminator gives to generated examples."""
    labels: dict[bool, list[tuple[float, ast.Call]]] = {True: [], False: []}
    for call in program.all_calls:
        if len(call.args) != 2 or not re.search(
            r"bce|binary_cross|criteri|advers|gan_loss|loss", last_name(call.func), re.I
        ):
            continue
        label = _constant_label(program, call.args[1])
        made = ast.unparse(call.args[0])
        for part in ast.walk(call.args[0]):
            before = program.behind(Use(part)) if isinstance(part, ast.Name) else None
            made += f" {ast.unparse(before.node)}" if before is not None else ""
        if label is None or not re.search(r"fake|generated|synth|\b(G|netG|gen)\(", made):
            continue
        labels["detach" in made].append((label, call))
    for label, call in labels[False]:
        if (
            labels[True]
            and all(other == label for other, _ in labels[True])
            and call.lineno > labels[True][0][1].lineno
        ):
            text = f"The generator is trained toward {label:g}, the label of generated examples for the discriminator."
            yield text, call
            return


def _constant_label(program: ParsedFile, value: ast.expr) -> float | None:
    for use in program.lineage(Use(value)):
        if use.changes is not None:
            return None
        match use.node:
            case ast.Call(func) if last_name(func) in ("ones", "ones_like", "zeros", "zeros_like"):
                return float(last_name(func).startswith("ones"))
            case ast.Call(func, [_, value, *_]) if last_name(func) in ("full", "full_like"):
                number = constant(program, value)
                return float(number) if isinstance(number, int | float) else None
    return None


# -- Gradients and optimizers -----------------------------------------------------------------------


def uncleared(history: TrainingHistory) -> Iterator[tuple[str, SourceLine]]:
    """Backward passes, if no file of the training clears gradients: each one adds to those of all before."""
    found = [(program, list(_never_cleared(program))) for program in sources(history)]
    if not any(_CLEARS.search("\n".join(program.lines)) for program, _ in found):
        yield from (
            (text, program.place(node)) for program, broken in found for text, node in broken
        )


def _never_cleared(program: ParsedFile) -> Broken:
    methods = [
        (call.func.attr, ast.unparse(call.func.value), call)
        for call in program.all_calls
        if isinstance(call.func, ast.Attribute)
    ]
    # An engine that makes the backward pass and the step clears gradients itself.
    engines = {owner for name, owner, _ in methods if name == "step"}
    used = re.search(r"\.grad\b|\.step\(|\.apply\(", "\n".join(program.lines))
    for name, owner, call in methods if used else ():
        trains = any(outer in repeated(program) for outer in program.around(call))
        if name == "backward" and owner not in engines and trains:
            text = (
                "Gradients are never cleared: each backward pass adds to those of all earlier ones."
            )
            yield text, call
            return


def _made_again(program: ParsedFile) -> Broken:
    """An optimizer that is created again in each round of its training, without the state of the one before."""
    trained = {
        next((o for o in program.around(loss) if isinstance(o, ast.For | ast.While)), None)
        for loss in _losses(program)
    }
    for call in program.all_calls:
        without_state = last_name(call.func) == "SGD" and argument(call, "momentum", 2) is None
        if not _OPTIMIZERS.match(last_name(call.func)) or not call.args or without_state:
            continue
        loops = (outer for outer in program.around(call) if isinstance(outer, ast.For | ast.While))
        for loop in islice(loops, 1):
            inside = list(ast.walk(loop))
            made = {last_name(t) for n in inside if isinstance(n, ast.Assign) for t in n.targets}
            given = names_in(call.args[0], attributes=True)
            between = takewhile(partial(is_not, loop), program.around(call))
            guarded = any(isinstance(outer, ast.If | ast.Try) for outer in between)
            by_epoch = isinstance(loop, ast.For) and "epoch" in last_name(loop.target)
            trains = loop in trained or (by_epoch and any(inner in trained for inner in inside))
            if trains and not guarded and not made & given and not _iterates(loop, call):
                text = f"{last_name(call.func)} is created again in each round of the loop: its averages start over."
                yield text, call


def _iterates(loop: ast.For | ast.While, call: ast.Call) -> bool:
    """Whether what the loop goes through is given to the call, as a rate that is searched, or a model."""
    if isinstance(loop, ast.While):
        return False
    names = names_in(loop.target)
    return bool(names & names_in(call))


# -- Names, orders and signs ---------------------------------------------------------------------


def _exchanged(program: ParsedFile, call: ast.Call) -> Broken:
    """Arguments that have each other's place, by their names."""
    names = [last_name(argument) for argument in call.args]
    if len(call.args) < 2 or any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    made = maker(program, call)
    called = f"{last_name(call.func)} {last_name(made) if made is not None else ''}"
    first, second = names[:2]
    is_pair = re.search(r"margin_?ranking", called, re.I) is not None
    if _ASYMMETRIC.search(called) and program.defined(call) is None:
        of_names = [[bool(kind.search(name)) for kind in (_TARGET, _OUTPUT)] for name in names[:2]]
        if of_names == [[True, False], [False, True]]:
            text = (
                f"{last_name(call.func)} is given {first} as its input and {second} as its target."
            )
            yield text, call
    elif is_pair and _NEGATIVE.search(first) and _POSITIVE.search(second) and len(call.args) > 2:
        if not any("-" in ast.unparse(use.node) for use in reached(program, call.args[2])):
            yield f"With a target of 1 the loss ranks {first} above {second}.", call
    elif re.search(r"triplet", called, re.I) and _POSITIVE.search("".join(names[2:3])):
        text = f"{second} is given as the positive example and {names[2]} as the negative one."
        yield from [(text, call)] if _NEGATIVE.search(second) else ()
    function = program.defined(call)
    if function is None or not all(isinstance(argument, ast.Name) for argument in call.args):
        return
    parameters = [a.arg for a in function.args.args if a.arg not in ("self", "cls")]
    for (n, a), (m, b) in combinations(enumerate(names), 2):
        if len(parameters) > m and a != b and (parameters[n], parameters[m]) == (b, a):
            others = [[last_name(x) for x in other.args] for other in program.calls_of(function)]
            if not any(len(other) > m and (other[n], other[m]) == (b, a) for other in others):
                yield f"{function.name} takes ({b}, {a}) but receives ({a}, {b}).", call
                return


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


def _of_rival(program: ParsedFile, node: ast.Assign) -> Broken:
    """An optimizer that has the name of one network and the parameters of its rival."""
    call = node.value
    if (
        not isinstance(call, ast.Call)
        or not call.args
        or not _OPTIMIZERS.match(last_name(call.func))
    ):
        return
    own, given = _words(last_name(node.targets[0])), _words(ast.unparse(call.args[0]))
    for pair in _RIVALS:
        for side, rival in (pair, pair[::-1]):
            if own & side and not own & rival and given & rival and not given & side:
                text = f"{last_name(node.targets[0])} receives {ast.unparse(call.args[0])[:60]}."
                yield text, call
                return


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(text)}


def reordered(history: TrainingHistory) -> tuple[str, SourceLine] | None:
    """Inputs that are put in another order than their labels: the reason, and the line that does."""
    inputs, targets = chosen_by(inputs_of(history)), chosen_by(targets_of(history))
    calls = (
        {u.node for _, u in uses if isinstance(u.node, ast.Call)} for uses in (inputs, targets)
    )
    if not set.intersection(*calls):
        return None
    for what, own, others in (("inputs", inputs, targets), ("labels", targets, inputs)):
        known = {use.node for _, use in others}
        inside = {part for _, use in own for part in ast.walk(use.node)}
        applied = None
        for program, use in own:
            applied = use.node if isinstance(use.node, ast.Subscript) else applied
            if use.node in known or not _reorders(program, use.node):
                continue
            # What else is put in this order may be the labels, along a way that was not followed.
            if all(name in inside for name in _uses_of(program, use.node)):
                text = f"Only the {what} are put in the order of {ast.unparse(use.node)[:60]}: labels do not belong to their inputs."
                return text, program.place(applied or use.node)
    return None


def _uses_of(program: ParsedFile, value: ast.AST) -> Iterator[ast.Name]:
    """Where an order that a statement stores, or a part of it, is read in the same function."""
    waiting: list[ast.AST] = [value]
    names: set[str] = set()
    while waiting:
        node = waiting.pop()
        around = program.around(node)
        statement = next((o for o in around if isinstance(o, ast.Assign | ast.For)), None)
        stored = getattr(statement, "targets", None) or [getattr(statement, "target", node)]
        new = {n.id for t in stored for n in ast.walk(t) if isinstance(n, ast.Name)} - names
        names |= new
        for name in program.nodes:
            if (
                isinstance(name, ast.Name)
                and name.id in new
                and isinstance(name.ctx, ast.Load)
                and program.function(name) is program.function(value)
            ):
                yield name
                part = _part_of(program, name)
                waiting += [part] if part is not None else []


def _part_of(program: ParsedFile, name: ast.AST) -> ast.AST | None:
    """What a statement stores or iterates over, if it is a value or a part of it; not what it is an index of."""
    whole = name
    for outer in program.around(name):
        if isinstance(outer, ast.Assign) or getattr(outer, "iter", None) is whole:
            return whole
        inner = [getattr(outer, name, None) for name in ("value", "func")]
        inner += getattr(outer, "elts", ())
        if not any(child is whole for child in inner):
            return None
        whole = outer
    return None


def _reorders(program: ParsedFile, node: ast.AST) -> bool:
    """Whether a call puts examples in another order, which are in the first dimension."""
    if not isinstance(node, ast.Call) or not _REORDERS.fullmatch(last_name(node.func)):
        return False
    if last_name(node.func) not in ("roll", "flip"):
        return True
    given = [ast.unparse(word) for word in (*node.args, *(a.value for a in node.keywords))]
    return given[-1:] in (["0"], ["(0,)"], ["[0]"])


def _unended(program: ParsedFile) -> Broken:
    """A value of the next state that counts though the episode is over."""
    known = [name for name in program.names if _DONE.match(name)]
    # Where some name is that of a mask, any other may hold it.
    if any(_GOES_ON.search(name) for name in program.names):
        return
    for loss in _losses(program) if known else ():
        target = bootstrapped(program, loss)
        if target is None:
            continue
        products = [list(_factors(side)) for side in (target.left, target.right)]
        product = next(p for p in products if any(map(_is_discount, p)))
        ended = [factor for factor in product if _DONE.match(last_name(_bare(factor)))]
        if ended:
            text = f"The value of the next state counts only where {ast.unparse(ended[0])} is true."
            yield text, target
            continue
        # Whatever it is called, a further factor may be 0 where the episode is over.
        discounted = (factor for factor in product if not _is_discount(factor))
        masked = sum(not isinstance(factor, ast.Constant) for factor in discounted) > 1
        used = (last_name(n) for use in reached(program, target) for n in ast.walk(use.node))
        if not masked and not any(_END.search(name) for name in used):
            text = f"The target adds the discounted value of the next state also where {known[0]} is true."
            yield text, target


def bootstrapped(program: ParsedFile, loss: ast.expr) -> ast.BinOp | None:
    """The sum of a reward and a discounted value of the next state that a loss was computed from."""
    for use in reached(program, loss):
        for node in ast.walk(use.node):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                factors = [factor for side in (node.left, node.right) for factor in _factors(side)]
                # What is added to itself is the return of an episode.
                if _is_added_to(program, node, factors):
                    continue
                discounts = [factor for factor in factors if _is_discount(factor)]
                # A number alone may be any weight: it is a discount where a reward is added.
                if any(map(last_name, discounts)) or (
                    discounts and any(map(_REWARD.search, names_in(node)))
                ):
                    return node
    return None


def _is_discount(factor: ast.expr) -> bool:
    value = factor.value if isinstance(factor, ast.Constant) else None
    is_near_one = isinstance(value, float) and _LEAST_DISCOUNT <= value < 1
    return is_near_one or bool(_DISCOUNT.match(last_name(factor)))


def _is_added_to(program: ParsedFile, added: ast.BinOp, factors: Sequence[ast.expr]) -> bool:
    """Whether a sum is assigned to a name that is one of its terms, as in ``R = r + gamma * R``."""
    names = {factor.id for factor in factors if isinstance(factor, ast.Name)}
    return any(
        isinstance(target, ast.Name) and target.id in names
        for node in program.nodes
        if isinstance(node, ast.Assign) and node.value is added
        for target in node.targets
    )


def bootstrapped_place(history: TrainingHistory) -> SourceLine | None:
    """The line of the target that a loss was given, if it adds a discounted value."""
    for program in sources(history):
        for loss in _losses(program):
            if (target := bootstrapped(program, loss)) is not None:
                return program.place(target)
    return None


def _of_nodes(
    kind: type[ast.AST], broken: Callable[[ParsedFile, Any], Broken]
) -> Callable[[ParsedFile], Broken]:
    def found(program: ParsedFile) -> Broken:
        nodes: list[Any] = [node for node in program.nodes if isinstance(node, kind)]
        for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
            yield from broken(program, node)

    return found


_COMPARE = "Compare the line with what it should compute."
CONTRACTS: Sequence[Contract] = (
    Contract("augmentation_wrong", _of_nodes(ast.Call, _drawn_alike), "Create the generator once, outside of what runs for each batch or example."),
    Contract("augmentation_wrong", _moved_alone, "Transform the image and its target with the same random choice."),
    Contract("preprocessing_mismatch", _fitted_twice, "Fit on the training data alone, and transform the other data."),
    Contract("loss_wrong", _of_nodes(ast.Call, _exchanged), _COMPARE),
    Contract("loss_wrong", _unended, "Multiply the value of the next state by 1 - done."),
    Contract("loss_wrong", _of_nodes(ast.For, _summed_forward), "Go through the rewards in reverse order."),
    Contract("loss_wrong", _constant_terms, "Compute the term from what the model returned, without detach(), item() or .data."),
    Contract("loss_wrong", _fakes_alike, "Train the generator toward the label of real examples."),
    Contract("optimizer_wrong", _made_again, "Create the optimizer once, before the loop."),
    Contract("parameters_frozen", _of_nodes(ast.Assign, _of_rival), "Give each optimizer the parameters of its own network."),
)  # fmt: skip
"""All contracts that the source alone can show to be broken."""
