"""Whatever Python is given: a program comes out, and nothing is raised."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero.check.launch.model import Job
from epochzero.check.program.interpreter import read_program
from epochzero.check.target.model import Target

STATEMENTS = [
    "import os, lib",
    "from lib import a as b, c",
    "from . import x",
    "from .. import *",
    "from train import *",
    "x = y = [1, 'a', {'k': (1, 2)}]",
    "x, *y = x",
    "(a, b), c = x, y",
    "x[0] = y[1:2] = z.w = 1",
    "x += 1",
    "x.append(x)",
    "del x, y[0], z.w",
    "print(f'{x!r:>{y}} {z:.2f}', *x, **y)",
    "x = '%s %d %%' % (x, 3)",
    "x = '{} {a} {0.b}'.format(x, a=1)",
    "x = os.path.join(x, 'a', y)",
    "x = lib.Path(x) / 'a' / y",
    "x = [a for a in x if a for b in a]",
    "x = {a: b async for a, b in y}",
    "x = lambda *a, b=1, **c: a",
    "x = (yield) if x else (yield from y)",
    "x = await y",
    "return x",
    "break",
    "continue",
    "raise x from y",
    "assert x, y",
    "global x, f",
    "nonlocal y",
    "x: int = 3",
    "x = super().f(__class__)",
    "x = f(x)(y).z[x:y:z, ...]",
    "x = x if y else z and not w or x < y <= z is not None in w",
    "x = ~x ** -y // 0 % 0 << 3",
    "x = getattr(x, 'a', y); setattr(x, y, z); vars(x)",
    "x = sorted(zip(x, y)); x = max(x); x = sum(x); x = range(3)[x]",
    "os.environ['A'] = x; x = os.environ['A']; x = os.getenv(x)",
    "p = __import__('argparse').ArgumentParser(); p.add_argument(x, y); p.parse_args([])",
    "type X = int",
]
BLOCKS = [
    "if x:", "elif y:", "else:", "while x:", "while True:", "for x in y:", "for a, *b in range(3):",
    "for x in x:", "try:", "except:", "except (E, lib.F) as e:", "except* E:", "finally:",
    "with x as y, open(x) as (z, w):", "def f(x, /, y=1, *a, z, **k):", "async def g():",
    "class A(B, metaclass=M):", "class B(A):", "match x:", "@f\ndef h(self):", "@x.setter\ndef p():",
    "case [1, *y] if y:", "case {'a': z, **w} | None:", "case A(x=1) as v:", "async for x in y:",
    "async with x:",
]  # fmt: skip


@st.composite
def sources(draw: st.DrawFn) -> str:
    """Lines put together at random; most are made to parse by taking out what does not."""
    lines: list[str] = []
    depth = 0
    for _ in range(draw(st.integers(1, 25))):
        depth = draw(st.integers(0, depth))
        indent = "    " * depth
        if draw(st.booleans()):
            block = draw(st.sampled_from(BLOCKS))
            lines += [indent + part for part in block.split("\n")]
            depth += 1
            lines.append("    " * depth + draw(st.sampled_from(STATEMENTS)))
        else:
            lines.append(indent + draw(st.sampled_from(STATEMENTS)))
    return parsing(lines) if draw(st.booleans()) else "\n".join(lines)


def parsing(lines: list[str]) -> str:
    """The lines without those at which the parser stops."""
    while lines:
        try:
            ast.parse("\n".join(lines))
        except SyntaxError as error:
            del lines[min(max(error.lineno or 1, 1), len(lines)) - 1]
        else:
            break
    return "\n".join(lines)


def read(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_bytes(data)
        program = read_program(Job(("--a", "1"), script, "", Path(folder)), Target("t"))
        assert "__main__" in program.modules
        for event in program.events:
            assert event.at.phase in ("initialization", "preprocessing", "training", "evaluation")
            assert event.at.place.line > 0


@settings(max_examples=150, deadline=None)
@given(sources())
def test_statements_at_random(source: str) -> None:
    read(source.encode())


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
)
def test_bytes_at_random(data: bytes) -> None:
    read(data)
