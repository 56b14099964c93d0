"""What surely fails is told in Python's own words, and nothing that Python allows."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.program.heap import Box
from epochzero.check.program.model import Program
from epochzero.check.program.python_errors import has_attribute, refused
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


def test_what_lists_lack_is_missing() -> None:
    # As far as is known, `sys.version_info` is a list.
    names = ("push", "append", "minor")
    assert [has_attribute(Box.of("list", ()), name) for name in names] == [False, None, None]


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


@pytest.mark.parametrize(
    "condition",
    [
        "epoch % 5 == 0",
        "(epoch + 1) % 5 == 0",
        "epoch == 99",
        "epoch > 0 and epoch % 10 == 0",
        "not epoch % 10",
        "epoch < 3 or epoch > 80",
    ],
)
@pytest.mark.parametrize("numbers", ["range(100)", "tqdm(range(100))", "range(0, 5000, 1)"])
def test_a_condition_that_some_round_meets_is_met(read: Read, condition: str, numbers: str) -> None:
    text = f"for epoch in {numbers}:\n    if {condition}:\n        (lambda: 1)(epoch)\n"
    program = read(f"from tqdm import tqdm\n\n{text}")
    assert [one.at.certain for one in program.failures] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "for epoch in range(100):\n    if epoch == 100:\n        (lambda: 1)(epoch)\n",
        "for epoch in range(100):\n    if epoch % 7 == 8:\n        (lambda: 1)(epoch)\n",
        "for epoch in range(100):\n    if epoch > 3:\n        print(last)\n    last = epoch\n",
        "seen = {}\nfor epoch in range(100):\n    if epoch:\n        seen['a']\n    seen['a'] = 1\n",
        "import sys\n\nfor epoch in range(100):\n    if epoch == 9:\n        (lambda: 1)(epoch)\n"
        "    if sys.stdin.read():\n        break\n",
    ],
)
def test_a_round_that_does_not_come_or_may_find_more_fails_not_surely(
    read: Read, text: str
) -> None:
    program = read(text)
    assert not any(one.at.certain for one in program.failures)
    assert not any(one.found is False and one.at.certain for one in program.lookups)


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


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("globals()['test']('m')", "arguments"),
        ("globals()['te' + 'st']()", ""),
        ("globals()['added']()", ""),
        ("getattr(Kind, 'B')", "attribute"),
        ("getattr(Kind, 'A')", ""),
        ("getattr(Kind, 'B', None)", ""),
    ],
)
def test_what_is_asked_for_by_its_name_is_known(read: Read, call: str, kind: str) -> None:
    head = "import enum\n\nclass Kind(enum.Enum):\n    A = 1\n\ndef test():\n    return 1\n\n"
    assert [one.kind for one in read(f"{head}{call}\n").failures] == ([kind] if kind else [])
