"""The type of a value does not allow an operation."""

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    category="type_mismatch",
    why="Values from the command line and from text files are strings. Python checks the type of a "
    "value only when an operation (addition, comparison, call or iteration) uses the value. This "
    "operation may run only after the training.",
    fix="Convert the value at its source.",
    source="Zhang et al., ICSE 2020, Table 1, Type Mismatch",
    check=failure_check(
        "type",
        "value",
        message=lambda failed: (
            f"Python does not support this operation on these values: {failed.at.place.code}"
        ),
        fix="Convert the value at its source. If it is an option, set its type.",
    ),
    examples="""
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument('--rate', default='0.1')
        args = parser.parse_args()
        print(args.rate / 10)  # <-
        ---- caught if
        -print(args.rate / 10)  # <-
        +if args.rate > 1:  # <-
        +    print(1)
        ---- ignored if
        -parser.add_argument('--rate', default='0.1')
        +parser.add_argument('--rate', default='0.1', type=float)
        ---- ignored if
        -print(args.rate / 10)
        +print(float(args.rate) / 10)
        ----
        epoch = 3
        print('epoch ' + epoch)  # <-
        ----
        epochs = 3
        for epoch in epochs:  # <-
            print(epoch)
        ----
        accuracy = 0.5
        print(accuracy())  # <-
        ----
        def results():
            return [1]


        print(results[0])  # <-
        ----
        name = 'net'
        print(f'{name:.2f}')  # <-
        ----
        import model

        print(model(3))  # <-
        ==> model.py <==
        def model(x):
            return x
        ----
        shape = (1, 2)
        shape[0] = 3  # <-
        ----
        import json

        c = json.load(open('c.json'))
        print(int(c['steps']))  # <-
        ==> c.json <==
        {"steps": "1e3"}
        ----
        epoch = 3
        print('epoch ' + str(epoch), f'{epoch:03d}', '=' * epoch)
        ----
        def cast(v):
            for kind in (int, float):
                try:
                    return kind(v)
                except ValueError:
                    pass
            return v


        print(cast('3.5'))
        ----
        def cast(v):
            try:
                return int(v)
            except ValueError as e:
                raise KeyError(v) from e


        try:
            cast('x')
        except KeyError:
            pass
        ----
        from enum import Enum


        class Mode(Enum):
            A = 1

            def show(self):
                return f'{self.value:d}'


        print(Mode.A.show(), Mode.A.name.lower(), Mode['A'])
        ----
        import triton


        @triton.jit
        def double(x):
            return x * 2


        double[(8,)](1)
        ----
        keys = {'a': 1}.keys()
        print(keys - {'a'}, keys | {'b'})
    """,
)
