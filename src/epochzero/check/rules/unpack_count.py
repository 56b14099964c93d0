"""The number of values differs from the number of names that they are assigned to."""

from __future__ import annotations

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    title="A result is unpacked into more or fewer names than it has values",
    category="illegal_argument",
    why="A function got one more result but is called in several places. The call in the "
    "evaluation is reached last.",
    fix="Write as many names as there are values.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument; section 5.5, common programming errors",
    check=failure_check(
        "unpack",
        message=lambda failed: (
            f"The number of values differs from the number of names: {failed.at.place.code}"
        ),
        fix="Write as many names as there are values; use `_` for values that you do not need.",
    ),
    examples="""
        def test(model):
            return model, 0.5, 1


        loss, accuracy = test('m')  # <-
        ---- ignored if
        -loss, accuracy = test('m')
        +loss, *rest = test('m')
        ----
        for name, rate, epochs in [('a', 0.1), ('b', 0.2)]:  # <-
            print(name)
        ----
        first, second, *rest = 'train'.split(',')  # <-
        ----
        def evaluate():
            return 1, 2, 3


        for epoch in range(100):
            if epoch == 99:
                loss, score = evaluate()  # <-
        ----
        def test(model):
            return model, 0.5


        loss, accuracy = test('m')
        ---- caught if
        -loss, accuracy = test('m')
        +loss, accuracy, f1 = test('m')  # <-
        ----
        def rows():
            yield 1
            yield 2


        a, b = rows()
        ----
        import time
        from functools import wraps


        def timed(f):
            @wraps(f)
            def inner(*a):
                return f(*a), time.time()

            return inner


        @timed
        def test(model):
            return 1, 2, 3


        result, seconds = test('m')
        ----
        import random


        def test(full):
            if full:
                return 1, 2, 3
            return 1, 2


        a, b = test(random.random() > 2)
    """,
)
