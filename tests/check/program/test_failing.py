"""What surely fails is told in Python's own words, and nothing that Python allows."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.program.failing import has_attribute, refused
from epochzero.check.program.heap import Box
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant

Read = Callable[..., Program]
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(1, 9), st.floats(1, 9), st.text("ab", max_size=3)
)
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
}


@given(PLAIN, PLAIN, st.sampled_from(sorted(OPERATORS, key=str)))
def test_an_operator_is_refused_as_python_refuses_it(
    left: object, right: object, op: type[ast.operator]
) -> None:
    try:
        OPERATORS[op](left, right)
        said = ""
    except TypeError as error:
        said = str(error)
    except ArithmeticError:
        said = ""
    assert refused(op(), Constant(left), Constant(right)) == said  # type: ignore[arg-type]


@given(st.sampled_from(dir([]) + dir(()) + dir({}) + ["push", "shape", "iteritems"]))
def test_what_a_list_has_is_not_said_to_be_missing(name: str) -> None:
    if hasattr([], name):
        assert has_attribute(Box.of("list", ()), name) is not False
    assert (has_attribute(Constant("a"), name) is True) == hasattr("a", name)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(lambda a: a)(1, 2)\n", "arguments"),
        ("None.x\n", "none"),
        ("a, b = 1, 2, 3\n", "unpack"),
        ("int('1.5')\n", "value"),
        ("1 / 0\n", "zero"),
        ("raise ValueError('no')\n", "raised"),
        ("print(late)\nlate = 1\n", "name"),
    ],
)
def test_a_failure_is_told_unless_it_is_caught(read: Read, text: str, kind: str) -> None:
    assert [one.kind for one in read(text).failures] == [kind]
    body = text.replace("\n", "\n    ").rstrip(" ")
    assert not read(f"try:\n    {body}\nexcept Exception:\n    pass\n").failures


def test_after_a_failure_that_is_caught_nothing_else_is_told(read: Read) -> None:
    program = read("try:\n    int('x')\n    None.x\nexcept ValueError:\n    pass\n")
    assert not program.failures


def test_a_property_is_set_by_its_setter(read: Read) -> None:
    program = read(
        """
        class Rate:
            def __init__(self):
                self._value = None

            @property
            def value(self):
                return self._value

            @value.setter
            def value(self, value):
                self._value = float(value)


        rate = Rate()
        rate.value = "0.1"
        print(rate.value + 1)
        """
    )
    assert not program.failures
