"""What an operator is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from epochzero_models.mutate.program import Edit, TrainingProgram, argument, called

Places = Callable[[TrainingProgram], Iterator[Edit]]


@dataclass(frozen=True, slots=True)
class MutationOperator:
    """How a leaf of the taxonomy is injected into a program.

    Attributes:
        leaf: its name.
        change: a sentence that says what becomes of which text.
        places: the edits of a program that each bring it in.
    """

    leaf: str
    change: str
    places: Places


def injects(leaf: str) -> Callable[[Places], MutationOperator]:
    """Turn a function that yields edits into an operator; its docstring describes the change."""
    return lambda places: MutationOperator(leaf, str(places.__doc__), places)


# -- Changes that several leaves share; the ROWS of a part consist of them ---------------------


def removed(layers: Collection[str] = (), calls: Collection[str] = ()) -> Places:
    """Layers become the identity; functions and methods of tensors are replaced by their input."""

    def places(program: TrainingProgram) -> Iterator[Edit]:
        for call in program.calls(*layers):
            if isinstance(call.func, ast.Attribute):
                yield program.replaced(call, f"{program.source(call.func.value)}.Identity()")
        for call in program.calls(*calls):
            if (given := _given(program, call)) is not None:
                yield program.replaced(call, program.operand(given))

    return places


def _given(program: TrainingProgram, call: ast.Call) -> ast.expr | None:
    """The tensor that is passed to a function, or whose method is called."""
    if not isinstance(call.func, ast.Attribute):
        return call.args[0] if call.args else None
    owner = program.source(call.func.value)
    if owner in ("F", "nn.functional", "torch.nn.functional", "functional", "torch"):
        return call.args[0] if call.args else None
    return call.func.value


def enlarged(names: Collection[str], position: int, keyword: str = "") -> Places:
    """A size that is passed to these calls is increased by one."""

    def places(program: TrainingProgram) -> Iterator[Edit]:
        for call in program.calls(*names):
            node = argument(call, keyword, position)
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                yield program.replaced(node, str(node.value + 1))
            elif node is not None:
                yield program.replaced(node, f"{program.source(node)} + 1")

    return places


def renamed(names: Mapping[str, str]) -> Places:
    """Another function of the same module is called."""
    return lambda program: (
        program.renamed(call, names[called(call)]) for call in program.calls(*names)
    )


def with_argument(names: Collection[str], keyword: str, value: str) -> Places:
    """These calls get a value for a keyword."""
    return lambda program: (
        program.with_argument(call, keyword, value) for call in program.calls(*names)
    )


def with_suffix(
    calls: Literal["losses", "trained_calls", "layer_calls"], suffix: str, position: int = 0
) -> Places:
    """An argument of these calls of a `TrainingProgram` gets a suffix, such as a call of a method."""

    def places(program: TrainingProgram) -> Iterator[Edit]:
        for call in getattr(program, calls):
            node = call.args[position]
            yield program.replaced(node, f"{program.operand(node)}{suffix}")

    return places


def without_method(name: str, suffix: str = "") -> Places:
    """The call of a method is replaced by its object, with a suffix."""
    return lambda program: (
        program.replaced(call, f"{program.source(call.func.value)}{suffix}")
        for call in program.calls(name)
        if isinstance(call.func, ast.Attribute)
    )
