"""The lines of the loop of the training, and of its evaluations."""

from __future__ import annotations

import ast

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.program import ParsedFile, argument, last_name, parsed
from epochzero.run.watch.lines.settings import origin, place_of, setting_place
from epochzero.run.watch.model import SourceLine

_PLANNED = ("max_epochs", "num_train_epochs", "max_steps", "epochs", "num_epochs", "n_epochs")
_NO_GRADIENT = ("no_grad", "inference_mode", "set_grad_enabled")


def backward_place(history: TrainingHistory) -> SourceLine | None:
    """The line that calls ``backward``."""
    return next(map(place_of, history.backwards), None)


def step_place(history: TrainingHistory) -> SourceLine | None:
    """The line that calls an optimizer's ``step``, else the one that made it."""
    return next(map(place_of, (*history.steps, *history.optimizers)), None)


def epochs_place(history: TrainingHistory) -> SourceLine | None:
    """The line that says how long the training goes: of its loop, or the setting of a trainer."""
    place = backward_place(history)
    found = at(place)
    if found is None:
        return place
    program, node = found
    enclosing = loops(program, node)
    named = [n for n in enclosing if "epoch" in ast.unparse(n.target).lower()]
    counted = [n for n in named or enclosing[::-1] if _limit(n) is not None]
    if counted:
        return program.place(origin(program, _limit(counted[0]) or counted[0].iter))
    for around in reversed([n for n in program.around(node) if isinstance(n, ast.While)]):
        if isinstance(around.test, ast.Compare):
            return program.place(origin(program, around.test.comparators[0]))
    for keyword in _PLANNED:
        for call in program.all_calls:
            value = argument(call, keyword)
            if value is not None:
                return program.place(origin(program, value))
    return program.place(enclosing[-1]) if enclosing else place


def loop_place(history: TrainingHistory) -> SourceLine | None:
    """The line of the loop over the batches."""
    place = backward_place(history)
    found = at(place)
    enclosing = loops(*found) if found else []
    return found[0].place(enclosing[0]) if found and enclosing else place


def training_mode_place(history: TrainingHistory) -> SourceLine | None:
    """The call of ``train()`` that the loop over the batches does not repeat, else that loop."""
    place = backward_place(history)
    found = at(place)
    if found is None:
        return place
    program, repeated = found[0], set(loops(*found)[:2])
    for node in program.nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "train"
            and not (node.args or node.keywords or repeated.intersection(loops(program, node)))
        ):
            return program.place(node)
    return loop_place(history)


def batch_size_place(history: TrainingHistory) -> SourceLine | None:
    """The line that set the size of a batch: of the first loader, else in the loop of the training."""
    loader = next(map(place_of, history.loaders), None)
    if loader is not None:
        return setting_place(loader, "batch_size", 2 if _is_fit(loader) else 1, "DataLoader")
    found = at(backward_place(history))
    if found is None:
        return None
    program, node = found
    for loop in loops(program, node)[:1]:
        for call in (n for n in ast.walk(loop.iter) if isinstance(n, ast.Call)):
            name, given = last_name(call.func), call.args
            if name in ("range", "trange", "arange") and len(given) == 3:
                return program.place(origin(program, given[2]))
            if name in ("split", "chunk", "array_split", "batch") and given:
                return program.place(origin(program, given[-1]))
            value = argument(call, "batch_size")
            if value is not None:
                return program.place(origin(program, value))
        return program.place(loop)
    return None


def _is_fit(place: SourceLine) -> bool:
    """Whether a line trains a model of Keras, and so is the one that takes the data in batches."""
    found = at(place)
    return found is not None and last_name(found[1].func) == "fit"


def evaluation_place(place: SourceLine | None) -> SourceLine | None:
    """The line where gradients are switched off around a call of the model, else that of the call."""
    found = at(place)
    if found is None:
        return place
    program, node = found
    for outer in program.around(node):
        if isinstance(outer, ast.With) and any(
            last_name(item.context_expr) in _NO_GRADIENT for item in outer.items
        ):
            return program.place(outer)
    return place


def uncalled_place(place: SourceLine | None, method: str) -> SourceLine | None:
    """The statement that names a method and does not call it, in the program that has a line."""
    program = parsed(place.path) if place else None
    named = (
        node
        for node in (program.nodes if program else ())
        if isinstance(node, ast.Expr) and getattr(node.value, "attr", "") == method
    )
    return program.place(node) if program and (node := next(named, None)) else None


def at(place: SourceLine | None) -> tuple[ParsedFile, ast.Call] | None:
    """The outermost call over a line."""
    program = parsed(place.path) if place else None
    calls = program.calls(place.line) if place and program else []
    return (program, calls[0]) if program and calls else None


def loops(program: ParsedFile, node: ast.AST) -> list[ast.For]:
    """The loops around a node, and around the calls of its function, the innermost first."""
    found: list[ast.For] = []
    seen: set[ast.AST] = set()
    while node not in seen:
        seen.add(node)
        function = program.function(node)
        for outer in program.around(node):
            if outer is function:
                break
            if isinstance(outer, ast.For):
                found.append(outer)
        if function is None:
            break
        node = next(program.calls_of(function), node)
    return found


def _limit(loop: ast.For) -> ast.expr | None:
    """What a loop counts to."""
    for call in (node for node in ast.walk(loop.iter) if isinstance(node, ast.Call)):
        if last_name(call.func) in ("range", "trange") and call.args:
            return call.args[0] if len(call.args) == 1 else call.args[1]
    return None
