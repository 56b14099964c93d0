"""Operators, comparisons and conditions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from epochzero.check.program import python_errors
from epochzero.check.program.counted_loops import FIRST_RANK, IterationValue, chosen, computed
from epochzero.check.program.frames import Flow, PathEnds
from epochzero.check.program.heap import (
    DIFFERS,
    BoundFunction,
    Box,
    Class,
    Function,
    JobModule,
    LibraryResult,
    Object,
    V,
    in_classes,
    is_enumeration,
    join,
)
from epochzero.check.program.operators import ARITHMETIC, BINARY, EQUALITY, ORDER
from epochzero.check.program.ranks import is_first_rank
from epochzero.check.program.tensors.machine import Tensors
from epochzero.check.program.texts import as_text, concat, join_paths, percent
from epochzero.check.program.values import Anything, Constant, External, Items, Text, Value

_LARGEST_NUMBER = 1 << 64
_LONGEST_REPEAT = 1000
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_UNARY: dict[type[ast.unaryop], Callable[[Any], object]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE = {**EQUALITY, **ORDER}


class Operations(Tensors):
    """Apply operators."""

    def binary(self, node: ast.BinOp) -> V:
        """Evaluate a binary operator."""
        # A long chain of + is walked in a loop, without recursion.
        chain: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            chain.append(left)
            left = left.left
        value = self.evaluate(left)
        for link in reversed(chain):
            value = self.operate(link.op, value, self.evaluate(link.right), link)
        return value

    def operate(self, op: ast.operator, left: V, right: V, node: ast.AST) -> V:
        """Apply a binary operator."""
        if message := python_errors.refused(op, left, right):
            is_none = python_errors.is_none(left) or python_errors.is_none(right)
            return self.fails("none" if is_none else "type", TypeError, message, node)
        if isinstance(op, _DIVISIONS) and _is_number(left) and _is_zero(right):
            return self.fails("zero", ZeroDivisionError, "division by zero", node)
        if isinstance(left, Constant) and isinstance(op, ast.Mod) and isinstance(left.value, str):
            return percent(left, right)
        if isinstance(left, Constant) and isinstance(right, Constant):
            return _computed(BINARY.get(type(op)), left, right)
        if (by_round := computed(ARITHMETIC.get(type(op)), left, right)) is not None:
            return by_round
        if (
            isinstance(op, ast.Div)
            and isinstance(left, LibraryResult)
            and as_text(left) is not None
        ):
            return LibraryResult(left.name, (join_paths([left, right]),), {}, left.place)
        if (
            isinstance(op, ast.Div)
            and isinstance(right, LibraryResult)
            and as_text(right) is not None
        ):
            return LibraryResult(right.name, (join_paths([left, right]),), {}, right.place)
        if isinstance(op, ast.Add):
            if isinstance(left, (Box, Items)) and isinstance(right, (Box, Items)):
                return _extended(left, right)
            if (as_text(left) or as_text(right)) and not isinstance(left, (Box, LibraryResult)):
                return concat([left, right])
        if isinstance(op, ast.BitOr) and isinstance(left, (External, Class)):
            return left  # a type annotation that is evaluated
        return Anything("computed from what is not known")

    def unary(self, node: ast.UnaryOp) -> V:
        """A sign, ``~`` or ``not``."""
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            known = self.truth(value)
            if known is not None:
                return Constant(not known)
            return computed(operator.not_, value) or Anything("a condition that is not known")
        if isinstance(value, Constant):
            try:
                return Constant(_UNARY[type(node.op)](value.value), value.origin)  # type: ignore[arg-type]
            except TypeError:
                return Anything("computed from what does not fit")
        return Anything("computed from what is not known")

    def all_or_any(self, node: ast.BoolOp) -> V:
        """Evaluate ``and`` and ``or``, which may skip their last operands."""
        stops = isinstance(node.op, ast.Or)
        values: list[V] = []
        with self.under():
            for operand in node.values:
                value = self.evaluate(operand)
                known = self.truth(value)
                values.append(FIRST_RANK if known is None and is_first_rank(operand) else value)
                if known is stops or operand is node.values[-1]:
                    break
                if known is None:
                    # The following operands are evaluated only perhaps.
                    self.narrow(certain=False, is_doubtful=True)
                else:
                    values.pop()
        if len(values) == 1:
            return values[0]
        if (by_round := chosen(stops, values)) is not None:
            return by_round
        last = self.truth(values[-1])
        if (
            last is stops
            and isinstance(values[-1], Constant)
            and isinstance(values[-1].value, bool)
        ):
            return values[-1]
        return DIFFERS

    def compare(self, node: ast.Compare) -> V:
        """Evaluate a chain of comparisons."""
        left = self.evaluate(node.left)
        result: bool | None = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            if message := python_errors.refused(op, left, right):
                is_none = python_errors.is_none(left) or python_errors.is_none(right)
                return self.fails("none" if is_none else "type", TypeError, message, node)
            by_round = computed(_COMPARE.get(type(op)), left, right)
            if by_round is not None and len(node.ops) == 1:
                return by_round
            flag = self.compared(op, left, right)
            if flag is False:
                return Constant(False)
            result = None if flag is None else result
            left = right
        return Anything("a comparison with what is not known") if result is None else Constant(True)

    def compared(self, op: ast.cmpop, left: V, right: V) -> bool | None:
        """Whether a comparison holds; None if unknown."""
        negated = isinstance(op, (ast.IsNot, ast.NotIn))
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = _identical(left, right)
            return None if same is None else same is not negated
        if isinstance(op, (ast.In, ast.NotIn)):
            there = self._contained(left, right)
            return None if there is None else there is not negated
        if isinstance(left, Constant) and isinstance(right, Constant):
            try:
                return bool(_COMPARE[type(op)](left.value, right.value))
            except TypeError:
                return None
        if isinstance(left, Box) and isinstance(right, Box) and type(op) in _COMPARE:
            mine, other = _plain_tuple(left), _plain_tuple(right)
            if mine is not None and other is not None:
                return bool(_COMPARE[type(op)](mine, other))
            return None
        if isinstance(op, (ast.Eq, ast.NotEq)) and _identical(left, right) is False:
            return isinstance(op, ast.NotEq)
        return None

    def _contained(self, value: V, container: V) -> bool | None:
        if isinstance(container, Constant) and isinstance(value, Constant):
            try:
                return value.value in container.value  # type: ignore[operator]
            except TypeError:
                return None
        if container == External("os.environ") and isinstance(value, Constant):
            return self.variable(str(value.value))[1]
        if isinstance(container, (Box, Items)) and isinstance(value, Constant):
            content = container.content if isinstance(container, Box) else container
            known = content.keys if container.kind == "dict" else content.values
            if any(isinstance(key, Constant) and key.value == value.value for key in known):
                return True
            if content.complete and all(isinstance(key, Constant) for key in known):
                return False
        return None

    def truth(self, value: V) -> bool | None:
        """The truth value of a value; None if unknown."""
        if isinstance(value, Constant):
            return bool(value.value)
        if isinstance(value, (Box, Items)):
            content = value.content if isinstance(value, Box) else value
            # An item of what is not known stands for any number of them, none included.
            return bool(content.values) if content.complete else None
        if isinstance(value, Text):
            return True if any(isinstance(part, str) and part for part in value.parts) else None
        if isinstance(value, IterationValue):
            return value.truth
        if isinstance(value, (Function, Class, JobModule, BoundFunction)):
            return True
        if isinstance(value, Object) and not value.cls.externals():
            line = value.cls.line()
            if in_classes(line, "__bool__") is None and in_classes(line, "__len__") is None:
                return True
        return None

    def choice(self, node: ast.IfExp) -> V:
        """Evaluate ``a if condition else b``; if the condition is unknown, join both."""
        known = self.truth(self.evaluate(node.test))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse)
        values: list[V] = []

        def way(expr: ast.expr) -> Callable[[], int]:
            def walk() -> int:
                values.append(self.evaluate(expr))
                return Flow.NEXT

            return walk

        self.either(way(node.body), way(node.orelse))
        if not values:
            raise PathEnds
        return values[0] if len(values) == 1 else join(*values)


def _computed(
    function: Callable[[Any, Any], object] | None, left: Constant, right: Constant
) -> Value:
    """Apply an operator to constants, within limits: no number or text grows without bound."""
    if function is None or any(_is_large(constant.value) for constant in (left, right)):
        return Anything("computed from large values")
    if function in (operator.pow, operator.lshift) and not _is_small(right.value):
        return Anything("computed from large values")
    if function is operator.mul and isinstance(left.value, (str, bytes)) != isinstance(
        right.value, (str, bytes)
    ):
        number = right.value if isinstance(left.value, (str, bytes)) else left.value
        if not isinstance(number, int) or number > _LONGEST_REPEAT:
            return Anything("a text that is too long")
    try:
        result = function(left.value, right.value)
    except (TypeError, ValueError, ArithmeticError):
        return Anything("computed from what does not fit")
    if isinstance(result, (str, bytes, int, float, complex)):
        return Constant(result, left.origin or right.origin)
    return Anything("computed from what does not fit")


def _is_number(value: V) -> bool:
    """Whether a value is a number; of a sum it is assumed, lists are rarely added by `sum`."""
    if isinstance(value, LibraryResult):
        return value.name in ("builtins.len", "builtins.sum")
    return isinstance(value, IterationValue) or (
        isinstance(value, Constant) and isinstance(value.value, (int, float))
    )


def _is_zero(value: V) -> bool:
    return _is_number(value) and isinstance(value, Constant) and not value.value


def _is_large(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) > _LARGEST_NUMBER
    return isinstance(value, (str, bytes)) and len(value) > 100_000


def _is_small(value: object) -> bool:
    return isinstance(value, (int, float)) and -64 <= value <= 64


def _identical(left: V, right: V) -> bool | None:
    """Whether two values are identical; None if unknown."""
    if left is right and not isinstance(left, Anything):
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        return type(left.value) is type(right.value) and left.value == right.value
    if isinstance(left, Object) and isinstance(right, Object) and is_enumeration(left.cls):
        return False if left.cls is right.cls and left.cls.members else None
    for first, second in ((left, right), (right, left)):
        if isinstance(first, Constant) and first.value is None:
            # An existing object is not None; the result of a library may be.
            made = isinstance(
                second, (Box, Items, Text, Function, Class, Object, JobModule, BoundFunction)
            )
            return False if made else None
    return None


def _plain_tuple(box: Box) -> tuple[int, ...] | None:
    """The numbers of a tuple, such as a version."""
    numbers = [
        value.value
        for value in box.content.values
        if isinstance(value, Constant) and isinstance(value.value, int)
    ]
    known = box.kind == "tuple" and box.content.complete
    return tuple(numbers) if known and len(numbers) == len(box.content.values) else None


def _extended(left: Box | Items, right: Box | Items) -> V:
    value = left.content if isinstance(left, Box) else left
    other = right.content if isinstance(right, Box) else right
    return Box.of(
        left.kind, (*value.values, *other.values), complete=value.complete and other.complete
    )
