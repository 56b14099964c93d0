"""Sizes of models against those of PyTorch's own layers, and how often a line is reached."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import Job
from epochzero.check.paths.sizes import parameters, times_saved
from epochzero.check.program.model import Module, Program
from epochzero.check.program.values import ANYTHING, Constant, Instance, Items, Value


def program(text: str = "") -> Program:
    module = Module("__main__", "train.py", Path("train.py"), text, ast.parse(text))
    return Program(Job((), Path("train.py"), "", Path()), {"__main__": module}, ())


def layer(kind: str, *arguments: object, **keywords: object) -> Instance:
    return Instance(
        f"torch.nn.{kind}",
        tuple(as_value(one) for one in arguments),
        {name: as_value(one) for name, one in keywords.items()},
    )


def as_value(one: object) -> Value:
    if isinstance(one, tuple):
        return Items("tuple", tuple(as_value(item) for item in one))
    return Constant(one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "arguments", "keywords"),
    [
        ("Linear", (30, 20), {}),
        ("Linear", (30, 20), {"bias": False}),
        ("Conv2d", (3, 16, 5), {}),
        ("Conv2d", (8, 16, (3, 5)), {"groups": 4}),
        ("Conv1d", (8, 16), {"kernel_size": 7}),
        ("ConvTranspose2d", (8, 16, 4), {}),
        ("Embedding", (100, 16), {}),
        ("LSTM", (12, 20), {"num_layers": 3}),
        ("LSTM", (12, 20), {"num_layers": 2, "bidirectional": True}),
        ("GRU", (12, 20, 2), {}),
        ("MultiheadAttention", (32, 4), {}),
        ("TransformerEncoderLayer", (32, 4), {}),
        ("TransformerEncoderLayer", (32, 4), {"dim_feedforward": 64}),
        ("TransformerDecoderLayer", (32, 4, 64), {}),
    ],
)
def test_parameters_are_those_of_pytorch(
    kind: str, arguments: tuple[object, ...], keywords: dict[str, object]
) -> None:
    torch = pytest.importorskip("torch")
    made = getattr(torch.nn, kind)(*arguments, **keywords)
    expected = sum(one.numel() for one in made.parameters())
    assert parameters(program(), layer(kind, *arguments, **keywords)) == expected


def test_layers_of_a_container_add_up_and_unknown_ones_count_nothing() -> None:
    known, unknown = layer("Linear", 9, 9), Instance("torch.nn.Linear", (ANYTHING, ANYTHING))
    both = Instance("torch.nn.Sequential", (known, unknown, known))
    assert parameters(program(), both) == 2 * 90
    assert parameters(program(), unknown) is None
    assert parameters(program(), ANYTHING) is None


@pytest.mark.parametrize(
    ("text", "line", "times"),
    [
        ("for e in range(10):\n    save()\n", 2, 10),
        ("for e in range(1, 11):\n    save()\n", 2, 10),
        ("N = 8\nfor e in range(N):\n    save()\n", 3, 8),
        ("for e in range(10):\n    if e % 5 == 0:\n        save()\n", 3, 2),
        ("for e in range(10):\n    if better:\n        save()\n", 3, 1),
        ("for e in unknown:\n    save()\n", 2, 1),
        ("for e in range(4):\n    for b in range(5):\n        save()\n", 3, 20),
        ("for e in range(4):\n    def f():\n        save()\n", 3, 1),
        ("save()\n", 1, 1),
    ],
)
def test_how_often_a_line_is_reached(text: str, line: int, times: int) -> None:
    assert times_saved(program(text), SourceLocation("train.py", line), ()) == times


def test_loops_around_the_callers_count() -> None:
    text = "def f():\n    save()\n\nfor e in range(6):\n    f()\n"
    assert (
        times_saved(program(text), SourceLocation("train.py", 2), (SourceLocation("train.py", 5),))
        == 6
    )
