"""A division by a count that is zero, or can be."""

import ast

from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant, Instance, Value
from epochzero.check.rule import (
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    claim_at,
    claim_failure,
    failures,
    guarded,
)

_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


def _check(view: JobView) -> Claims:
    for failed in failures(view.program, "zero"):
        yield claim_failure(
            failed,
            message=f"The divisor is 0: {failed.at.place.code}",
            fix="Divide by max(1, count), or skip the division if the count is 0.",
        )
    loaders = _dropping_loaders(view.program)
    for module in view.modules:
        for node in code_of(module).of(ast.BinOp) if loaders else ():
            place = module.place(node.right)
            at = view.reach.at(module, node)
            if (
                isinstance(node.op, _DIVISIONS)
                and (place.path, place.line, place.column) in loaders
                and not _is_asked(module, node.right)
                and at is not None
                and not guarded(at, ZeroDivisionError)
            ):
                written = ast.unparse(node.right)
                yield claim_at(
                    at,
                    severity="warning",
                    message=f"{written} is 0 if the data set has fewer samples than a batch: "
                    "drop_last is set.",
                    consequence="ZeroDivisionError: division by zero",
                    fix=f"Divide by max(1, {written}), or handle the case of no items.",
                )


def _dropping_loaders(program: Program) -> set[tuple[str, int, int]]:
    """The positions at which the length of a loader is asked that may drop its only batch."""
    return {
        (call.at.place.path, call.at.place.line, call.at.place.column)
        for call in program.calls
        if call.name == "builtins.len" and call.arguments and _may_drop_all(call.arguments[0])
    }


def _may_drop_all(loader: Value) -> bool:
    """Whether a loader without shuffling drops its last batch: one for an evaluation."""
    if not isinstance(loader, Instance) or loader.made_by != "torch.utils.data.DataLoader":
        return False
    drop, shuffle = loader.keywords.get("drop_last"), loader.keywords.get("shuffle")
    drops = isinstance(drop, Constant) and drop.value is True
    return drops and (shuffle is None or (isinstance(shuffle, Constant) and not shuffle.value))


def _is_asked(module: Module, divisor: ast.expr) -> bool:
    """Whether a condition around the division tests its divisor."""
    written = ast.unparse(divisor)
    names = {written, written.removeprefix("len(").removesuffix(")")}
    code = code_of(module)
    for outer in code.around(divisor):
        if isinstance(outer, ast.If | ast.IfExp | ast.While | ast.BoolOp):
            text = ast.unparse(outer.values[0] if isinstance(outer, ast.BoolOp) else outer.test)
            if any(name in text for name in names):
                return True
    return False


RULE = Rule(
    category="division_by_zero",
    why="A mean over zero items terminates the job. Common causes are an evaluation set that is "
    "smaller than a batch and an option with the value 0.",
    fix="Divide by max(1, count), or report that the evaluation has no data.",
    source="Zhang et al., ICSE 2020, Table 1, Division by Zero, and section 3.3 on evaluation",
    check=_check,
    examples="""
        $ python train.py --n 0
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--n', type=int, default=4)
        args = p.parse_args()
        print(100 // args.n)  # <-
        ---- caught if
        -print(100 // args.n)  # <-
        +for step, x in enumerate(open('a')):
        +    if step % args.n == 0:  # <-
        +        print(x)
        ---- ignored if
        -print(100 // args.n)
        +print('a' 'b%s' % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print(f'{1}-%d' % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print(args.name % args.n if hasattr(args, 'name') else 0)
        ---- ignored if
        -print(100 // args.n)
        +print(open('a').readline() % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print(b'%d' % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print('%d of %d' % (args.n, args.n))
        ----
        from torch.utils.data import DataLoader


        def validate(loader):
            total = 0
            for x in loader:
                total += x
            return total / len(loader)  # <-


        validate(DataLoader([1, 2], batch_size=8, drop_last=True))
        ---- ignored if
        -validate(DataLoader([1, 2], batch_size=8, drop_last=True))
        +validate(DataLoader([1], drop_last=True, shuffle=True))
        ----
        def mean(values):
            print(values)
            return sum(values) / len(values)  # <-


        mean([])
        ---- ignored if
        -mean([])
        +mean([1, 2])
        ----
        $ python train.py --epochs 30
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--epochs', type=int)
        every = p.parse_args().epochs // 10
        for epoch in range(9):
            if epoch % every == 0:
                print(epoch)
        ----
        results = {}
        print(1 / len(results) if results else 0)
        ----
        results = []
        try:
            print(1 / len(results))
        except ZeroDivisionError:
            print(0)
    """,
)
