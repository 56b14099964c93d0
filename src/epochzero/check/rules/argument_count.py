"""A call passes arguments that the job's own function or class does not accept."""

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    category="illegal_argument",
    why="Python checks the arguments of a call only when the call runs. An invalid call in the "
    "evaluation therefore fails after the training.",
    fix="Pass the arguments that the function accepts.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument; section 5.5, common programming errors",
    check=failure_check(
        "arguments",
        message=lambda failed: f"{failed.message}.",
        fix="Pass the arguments that the function accepts.",
    ),
    examples="""
        def train(model, loader, epochs=3):
            print(model, loader, epochs)


        train('m')  # <-
        ---- ignored if
        -train('m')
        +args = ['m', 'l']
        +train(*args)
        ---- caught if
        -train('m')  # <-
        +options = {'loader': 1, 'rate': 2}
        +step = train
        +step('m', **options)  # <-
        ----
        class Trainer:
            def fit(self, data):
                print(len(data))
                for batch in data:
                    self.step(batch, 1)  # <-

            def step(self, batch):
                print(batch)


        Trainer().fit([1])
        ----
        from models import build

        build(depth=2)  # <-
        ==> models.py <==
        def build(width, depth):
            return width, depth
        ----
        from torch.utils.data import DataLoader


        def collate():
            return 1


        for batch in DataLoader([1, 2], collate_fn=collate):  # <-
            print(batch)
        ----
        MODELS = {}


        def register(f):
            MODELS[f.__name__] = f
            return f


        @register
        def net(width, depth):
            return width * depth
        print(MODELS['net'](3, depth=2))
        ----
        def by(model, name):
            return name


        print(list(map(by, [1, 2], 'ab')), sorted([1], key=lambda one: one))
        ----
        from functools import partial


        def by(model, name):
            return name


        print(sorted([1, 2], key=partial(by, 1)))
        ---- caught if
        -from functools import partial
        +from multiprocessing import Pool
        @@
        -print(sorted([1, 2], key=partial(by, 1)))
        +with Pool(2) as pool:
        +    pool.map(by, [1, 2])  # <-
        ----
        from torch import nn

        layer = nn.Linear(2, 2)
        layer.register_forward_hook(lambda *given: print(given))
        layer.register_forward_hook(lambda m, a, k, o: print(o), with_kwargs=True)
        ----
        from dataclasses import dataclass


        @dataclass
        class Settings:
            rate: float
            epochs: int = 3


        print(Settings(epochs=2))  # <-
        ---- ignored if
        -print(Settings(epochs=2))
        +print(Settings(0.1, epochs=2), Settings(rate=1))
        ----
        from functools import wraps


        def with_seed(f):
            @wraps(f)
            def inner(*a):
                return f(*a, seed=1)

            return inner


        @with_seed
        def test(model, seed):
            print(model, seed)


        run = test
        run('m')
        ----
        class Net:
            def __new__(cls, *a):
                return object.__new__(cls)


        print(Net(1))
        ----
        from torch import nn


        class Net(nn.Module):
            def __init__(self, width, classes):
                super().__init__()
                self.fc = nn.Linear(width, classes)

            def forward(self, x, mask):
                return self.fc(x)


        model = Net(10, 2)
        print(model(1))  # <-
        ----
        import click


        @click.command()
        @click.option('--n')
        def main(n):
            print(n)


        main()
        ----
        def make(kind):
            return kind


        if True:
            make = lambda: 1
        make()
        ----
        import argparse


        class Parser(argparse.ArgumentParser):
            pass


        print(Parser(description='x'))
    """,
)
