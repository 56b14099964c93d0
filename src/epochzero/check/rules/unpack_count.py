"""The number of values differs from the number of names that they are assigned to."""

from __future__ import annotations

from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Rule,
    Target,
    claim_failure,
    failures,
)


def _check(program: Program, target: Target) -> Claims:
    for failed in failures(program, "unpack"):
        yield claim_failure(
            failed,
            message=f"The number of values differs from the number of names: {failed.at.place.code}",
            fix="Write as many names as there are values; use `_` for values that you do not need.",
        )


_TEST = "def test(model):\n    return model, 0.5{}\n\n\n"

RULE = Rule(
    title="A result is unpacked into more or fewer names than it has values",
    category="illegal_argument",
    why="A function got one more result but is called in several places. The call in the "
    "evaluation is reached last.",
    fix="Write as many names as there are values.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument; section 5.5, common programming errors",
    check=_check,
    catches=(
        Case({"train.py": f"{_TEST.format(', 1')}loss, accuracy = test('m')\n"}, line=5),
        Case({"train.py": f"{_TEST.format('')}loss, accuracy, f1 = test('m')\n"}, line=5),
        Case({"train.py": "for name, rate, epochs in [('a', 0.1), ('b', 0.2)]:\n    print(name)\n"}, line=1),
        Case({"train.py": "first, second, *rest = 'train'.split(',')\n"}, line=1),
        Case({"train.py": "def evaluate():\n    return 1, 2, 3\n\n\nfor epoch in range(100):\n    if epoch == 99:\n"
              "        loss, score = evaluate()\n"}, line=7),
    ),
    leaves=(
        Case({"train.py": f"{_TEST.format('')}loss, accuracy = test('m')\n"}),
        Case({"train.py": f"{_TEST.format(', 1')}loss, *rest = test('m')\n"}),
        Case({"train.py": "def rows():\n    yield 1\n    yield 2\n\n\na, b = rows()\n"}),
        Case({"train.py": "import time\nfrom functools import wraps\n\n\ndef timed(f):\n    @wraps(f)\n"
              "    def inner(*a):\n        return f(*a), time.time()\n\n    return inner\n\n\n@timed\n"
              "def test(model):\n    return 1, 2, 3\n\n\nresult, seconds = test('m')\n"}),
        Case({"train.py": "import random\n\n\ndef test(full):\n    if full:\n        return 1, 2, 3\n"
              "    return 1, 2\n\n\na, b = test(random.random() > 2)\n"}),
    ),
)  # fmt: skip
