"""Which line made the loss, and what it was computed from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.program import ParsedFile, Use, argument, last_name, parsed
from epochzero.run.watch.lines.settings import CONVERSIONS, origin, place_of
from epochzero.run.watch.lines.training import backward_place
from epochzero.run.watch.model import SourceLine


def loss_place(history: TrainingHistory, *keywords: str, function: str = "") -> SourceLine | None:
    """The line that made the loss, or gave it the first of these settings that it has; of several, that of this function.

    Of a loss that the program computes itself, the line that does.
    """
    records = sorted(
        history.losses,
        key=lambda loss: (bool(loss.get("evaluating")), loss.get("function") != function),
    )
    place = place_of(records[0]) if records else None
    if place is None:
        return own_loss_place(history)
    program = parsed(place.path)
    calls = program.calls(place.line) if program else []
    for call in calls:
        made = call if program and program.is_of_library(call.func) else maker(program, call)
        if program is None or made is None or len(call.args) + len(call.keywords) < 2:
            continue
        given = (argument(made, keyword) for keyword in keywords)
        value = next((node for node in given if node is not None), None)
        return program.place(origin(program, value) if value is not None else made)
    return place


def own_loss_place(history: TrainingHistory) -> SourceLine | None:
    """The line that computed the loss, before what is done to it in the line of its backward pass."""
    place = backward_place(history)
    found = backward_loss(history)
    if place is None or found is None:
        return place
    program, loss = found
    uses = [use for use in program.lineage(Use(loss)) if not isinstance(use.node, ast.Name)]
    earlier = [use for use in uses if program.place(use.node).line < place.line]
    direct = any(isinstance(node, ast.Call) and len(node.args) > 1 for node in ast.walk(loss))
    if direct or not earlier:
        return place
    made = maker(program, earlier[0].node) if isinstance(earlier[0].node, ast.Call) else None
    owner = program.class_of(made) if made is not None else None
    forward = program.method(owner, "forward") if owner is not None else None
    inside = ast.walk(forward) if forward is not None else ()
    returns = [node for node in inside if isinstance(node, ast.Return)]
    return program.place(max(returns, key=lambda node: node.lineno, default=earlier[0].node))


_LISTS = {"parameters", "named_parameters"}


def penalty_place(history: TrainingHistory) -> SourceLine | None:
    """The line that adds up the size of the weights for the loss; None if the file of the backward pass has none."""
    place = backward_place(history)
    program = parsed(place.path) if place else None
    for node in program.nodes if program else ():
        over = node.iter if isinstance(node, ast.For) else node
        if isinstance(over, ast.Call):
            names = {last_name(part) for part in ast.walk(node) if isinstance(part, ast.Call)}
            powers = any(isinstance(part, ast.Pow) for part in ast.walk(node))
            clips = any("clip" in name or "clamp" in name for name in names)
            sized = powers or names & {"pow", "norm", "square", "abs"}
            listed = last_name(over) in _LISTS if over is not node else names & _LISTS
            if program and sized and listed and not clips:
                return program.place(node)
    return None


def maker(program: ParsedFile | None, call: ast.Call) -> ast.Call | None:
    """The call that made what is called, such as ``nn.MSELoss()`` of ``criterion(x, y)``."""
    if isinstance(call.func, ast.Call):
        return call.func
    if program is None or not isinstance(call.func, ast.Name | ast.Attribute):
        return None
    for use in program.lineage(Use(call.func)):
        if isinstance(use.node, ast.Call) and last_name(use.node.func) not in CONVERSIONS:
            return use.node
    return None


def backward_loss(history: TrainingHistory) -> tuple[ParsedFile, ast.expr] | None:
    """The expression whose gradients are asked for first."""
    return next(losses(history), None)


def losses(history: TrainingHistory) -> Iterator[tuple[ParsedFile, ast.expr]]:
    """What the training minimizes: what each backward pass was called on, else what the step of a trainer returns."""
    found = [pair for record in history.backwards if (pair := loss_at(place_of(record)))]
    for program in () if found else sources(history):
        found += [(program, loss) for loss in returned_loss(program)]
    yield from found


def loss_at(place: SourceLine | None) -> tuple[ParsedFile, ast.expr] | None:
    """The expression whose gradients are asked for in a line."""
    program = parsed(place.path) if place else None
    for call in program.calls(place.line) if program and place else ():
        if program and (loss := minimized(call)) is not None:
            return program, loss
    return None


def minimized(call: ast.Call) -> ast.expr | None:
    """The expression whose gradients a call asks for; None for another call."""
    if last_name(call.func) not in ("backward", "manual_backward"):
        return None
    if call.args and not isinstance(call.args[0], ast.Constant):
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def returned_loss(program: ParsedFile) -> Iterator[ast.expr]:
    """What the methods of a file return that a trainer minimizes."""
    for node in program.nodes:
        function = program.function(node) if isinstance(node, ast.Return) and node.value else None
        if function is None or function.name not in ("training_step", "compute_loss"):
            continue
        value: ast.AST | None = getattr(node, "value", None)
        value = value.orelse if isinstance(value, ast.IfExp) else value
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            value = next(
                (v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "loss"), None
            )
        if isinstance(value, ast.expr):
            yield value


def sources(history: TrainingHistory) -> list[ParsedFile]:
    """The user's files that records name, those of the training first."""
    records = (*history.backwards, *history.losses, *history.optimizers, *history.loaders)
    places = [*map(place_of, records), *(layer.place for layer in history.layers)]
    paths = dict.fromkeys(place.path for place in places if place is not None)
    return [program for path in paths if (program := parsed(path)) is not None]


def reached(program: ParsedFile, value: ast.expr) -> Iterator[Use]:
    """A value and what it was computed from, along all names, the nearest first."""
    waiting: list[Use] = [Use(value)]
    seen: set[ast.AST] = set()
    while waiting and len(seen) < 80:
        use = waiting.pop(0)
        if use.node in seen:
            continue
        seen.add(use.node)
        yield use
        for node in ast.walk(use.node):
            if isinstance(node, ast.Call) and node is not use.node:
                waiting.append(Use(node, (), use.calls))
            if isinstance(node, ast.Name):
                before = program.behind(Use(node, (), use.calls))
                waiting += [before] if before is not None else []


def model_call(
    program: ParsedFile, value: ast.expr
) -> tuple[ast.Call, dict[ast.AST, ast.Call | int]] | None:
    """The call of a model that a value was computed with."""
    for use in reached(program, value):
        if isinstance(use.node, ast.Call) and is_model(program, use.node):
            return use.node, dict(use.calls)
    return None


def is_model(program: ParsedFile, call: ast.Call) -> bool:
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
    made = maker(program, call)
    return made is None or "Loss" not in last_name(made.func)
