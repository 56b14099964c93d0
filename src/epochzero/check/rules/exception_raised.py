"""The program reaches a line at which it raises an exception."""

from collections.abc import Mapping

from epochzero.check.rule import Claims, JobView, Rule, claim_failure, failures

_CATEGORIES: Mapping[str, str] = {
    "AttributeError": "attribute_not_found",
    "FileNotFoundError": "path_not_found",
    "ImportError": "library_not_found",
    "ModuleNotFoundError": "library_not_found",
    "NotADirectoryError": "path_not_found",
    "NotImplementedError": "not_implemented",
    "PermissionError": "permission_denied",
    "TypeError": "type_mismatch",
}

_FIXES: Mapping[str, str] = {
    "abstract": "Implement the method in the class.",
    "import": "Move code that two modules share to a third one; run a module of a package with `python -m`.",
    "raised": "Pass a supported value, or implement the missing case.",
}
"""By kind of `Failed`."""


def _check(view: JobView) -> Claims:
    for failed in failures(view.program, *_FIXES):
        if failed.kind != "import" and not failed.at.certain:
            continue
        is_abstract = failed.kind == "abstract"
        reached = "With these arguments the program reaches this line and raises: "
        yield claim_failure(
            failed,
            category="not_implemented"
            if is_abstract
            else _CATEGORIES.get(failed.error, RULE.category),
            message=f"{reached}{failed.at.place.code}"
            if failed.kind == "raised"
            else f"{failed.message}.",
            fix=_FIXES[failed.kind],
        )


RULE = Rule(
    category="illegal_argument",
    why="A program rejects an unknown value or an unimplemented method only on first use. In "
    "evaluation code, the first use often comes after training.",
    fix="Pass a supported value, or implement the missing case.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument and Not Implemented",
    check=_check,
    general=True,
    examples="""
        $ python train.py --optimizer adam
        import argparse


        def build(name):
            if name == 'sgd':
                return 1
            raise ValueError(f'no optimizer {name}')  # <-


        parser = argparse.ArgumentParser()
        parser.add_argument('--optimizer', default='sgd')
        build(parser.parse_args().optimizer)
        ---- ignored if
        -$ python train.py --optimizer adam
        ---- ignored if
        -build(parser.parse_args().optimizer)
        +try:
        +    build(parser.parse_args().optimizer)
        +except ValueError:
        +    pass
        ----
        $ python train.py --low 5 --amp
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--low', type=int, default=1)
        p.add_argument('--amp', action='store_true')
        args = p.parse_args()
        if args.amp and args.low > 3:
            raise ValueError('no')  # <-
        ----
        class Base:
            def test(self):
                raise NotImplementedError  # <-


        class Mine(Base):
            pass


        Mine().test()
        ----
        from abc import ABC, abstractmethod


        class Task(ABC):
            @abstractmethod
            def test(self):
                pass


        class Mine(Task):
            def tests(self):
                print(1)


        Mine()  # <-
        ---- ignored if
        -    def tests(self):
        +    def test(self):
        ----
        import model
        ==> model.py <==
        from loss import weight


        def build():
            return 1
        ==> loss.py <==
        from model import build  # <-

        weight = build
        ----
        from .model import build  # <-
        ==> model.py <==
        def build():
            return 1
        ---- ignored if
        -from .model import build
        +try:
        +    from .model import build
        +except ImportError:
        +    from model import build
        ----
        import random

        if random.random() > 2:
            raise ValueError('no')
        ----
        for _ in range(3):
            try:
                open('data.txt')
                break
            except OSError:
                pass
        else:
            raise RuntimeError('no data')
    """,
)
