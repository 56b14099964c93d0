"""None is used as an object."""

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    category="null_reference",
    why="A function without a return statement returns None. Unpacking this result or reading one "
    "of its attributes raises an error. Such errors often occur in untested evaluation code.",
    fix="Add the missing return statement, or do not use the result.",
    source="Zhang et al., ICSE 2020, Table 1, Null Reference",
    general=True,
    check=failure_check(
        "none",
        message=lambda failed: (
            f"A value is None when the job reaches this line: {failed.at.place.code}"
        ),
        fix="Set the value first, or check whether it is None.",
    ),
    examples="""
        def test(model):
            accuracy = len(model)
            print(accuracy)


        loss, accuracy = test('m')  # <-
        ---- caught if
        -loss, accuracy = test('m')  # <-
        +print(test('m')['loss'])  # <-
        ---- caught if
        -loss, accuracy = test('m')  # <-
        +for row in test('m'):  # <-
        +    print(row)
        ----
        names = ['b', 'a']
        names = names.sort()
        print(len(names))  # <-
        ----
        options = {'a': 1}
        print(options.get('b') + 1)  # <-
        ----
        best = None
        print(f'{best:.2f}')  # <-
        ----
        class T:
            def __init__(self):
                self.s = None

            def step(self):
                self.s.step()  # <-


        T().step()
        ---- ignored if
        -T().step()
        +import functools
        +
        +
        +@functools.wraps(T().step)
        +def step():
        +    pass
        ---- ignored if
        -T().step()
        +t = T()
        +t.s = T()
        +if t.s is None:
        +    t.step()
        ----
        best = None
        for loss in open('l.txt'):
            if best is not None:
                print(best.strip())
            best = loss
        ==> l.txt <==
        1
        2
        ----
        class Best:
            value = None

            def update(self, value):
                if self.value is None or value > self.value:
                    self.value = value
                return self.value + 1


        best = Best()
        for i in range(100):
            best.update(i)
        ----
        def rows():
            yield 1


        for row in rows():
            print(row)
        ----
        class Base:
            def load(self):
                raise NotImplementedError


        class A(Base):
            def load(self):
                return [1]


        print(A().load()[0])
    """,
)
