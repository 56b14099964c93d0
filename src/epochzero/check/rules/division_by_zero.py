"""A division by a count that is zero, or can be."""

from __future__ import annotations

import ast

from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant, Instance, Items, Value
from epochzero.check.rule import (
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    claim_at,
    claim_failure,
    examples,
    failures,
    guarded,
)

_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


def _check(view: JobView) -> Claims:
    reach = view.reach
    counts = _counts(view.program)
    reported: set[tuple[str, int]] = set()
    for module in view.modules:
        for node in code_of(module).of(ast.BinOp):
            if not isinstance(node.op, _DIVISIONS):
                continue
            message = _of_option(view.program, node.right) or _of_length(module, node.right, counts)
            if not message or _is_asked(module, node.right) or _may_format(module, node):
                continue
            is_sure = message.endswith("is 0.")
            at = reach.at(module, node)
            if at is not None and not guarded(at, ZeroDivisionError):
                reported.add((at.place.path, at.place.line))
                yield claim_at(
                    at,
                    severity=reach.severity(at) if is_sure else "warning",
                    message=message,
                    consequence="ZeroDivisionError: division by zero",
                    fix=f"Divide by max(1, {ast.unparse(node.right)}), or handle the case of no "
                    "items.",
                )
    for failed in failures(view.program, "zero", reported=reported):
        yield claim_failure(
            failed,
            message=f"The divisor is 0: {failed.at.place.code}",
            fix="Divide by max(1, count), or skip the division if the count is 0.",
        )


def _of_option(program: Program, divisor: ast.expr) -> str:
    """The message if an option that is zero is the divisor."""
    if not isinstance(divisor, ast.Attribute) or not isinstance(divisor.value, ast.Name):
        return ""
    is_options = divisor.value.id in (
        "args",
        "opt",
        "options",
        "opts",
        "params",
        "cfg",
        "config",
        "flags",
        "hparams",
    )
    value = program.options.get(divisor.attr)
    is_zero = isinstance(value, Constant) and type(value.value) in (int, float) and not value.value
    return f"The option {divisor.attr} is 0." if is_options and is_zero else ""


def _counts(program: Program) -> dict[tuple[str, int, int], list[Value]]:
    """The argument of each call of len, by the position of the call."""
    found: dict[tuple[str, int, int], list[Value]] = {}
    for call in program.calls:
        if call.name == "builtins.len" and call.arguments:
            place = call.at.place
            key = (place.path, place.line, place.column)
            found.setdefault(key, []).append(call.arguments[0])
    return found


def _of_length(
    module: Module, divisor: ast.expr, counts: dict[tuple[str, int, int], list[Value]]
) -> str:
    """The message if the divisor is the length of something that is or can be empty."""
    if not isinstance(divisor, ast.Call):
        return ""
    for value in counts.get((module.path, divisor.lineno, divisor.col_offset + 1), ()):
        written = ast.unparse(divisor)
        if isinstance(value, Items) and value.complete and not value.values and not value.keys:
            return f"{written} is 0."
        if isinstance(value, Instance) and _may_drop_all(value):
            return (
                f"{written} is 0 if the data set has fewer samples than a batch: drop_last is set."
            )
    return ""


def _may_drop_all(loader: Instance) -> bool:
    """Whether a loader without shuffling drops its last batch: one for an evaluation."""
    if loader.made_by != "torch.utils.data.DataLoader":
        return False
    drop, shuffle = loader.keywords.get("drop_last"), loader.keywords.get("shuffle")
    drops = isinstance(drop, Constant) and drop.value is True
    return drops and (shuffle is None or (isinstance(shuffle, Constant) and not shuffle.value))


def _may_format(module: Module, node: ast.BinOp) -> bool:
    """Whether ``%`` may format a text: its left side is not known to be a number."""
    if not isinstance(node.op, ast.Mod):
        return False
    match node.left:
        case ast.Constant(int() | float()) | ast.BinOp(op=ast.Sub() | ast.Div() | ast.FloorDiv()):
            return False
        case ast.BinOp(op=ast.Add(), right=ast.Constant(int() | float())):
            return False
        case ast.Call(ast.Name("len")):
            return False
    return ast.unparse(node.left) not in _counters(module)


def _counters(module: Module) -> set[str]:
    """Names and attributes that a loop or ``+= 1`` counts."""
    code = code_of(module)
    found = {ast.unparse(one.target) for one in code.of(ast.AugAssign) if _is_integer(one.value)}
    for loop in code.of(ast.For):
        match loop.iter, loop.target:
            case ast.Call(ast.Name("range")), target:
                found.add(ast.unparse(target))
            case ast.Call(ast.Name("enumerate")), ast.Tuple([number, *_]):
                found.add(ast.unparse(number))
    return found


def _is_integer(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _is_asked(module: Module, divisor: ast.expr) -> bool:
    """Whether a condition around the division tests its divisor."""
    written = ast.unparse(divisor)
    names = {written, written.removeprefix("len(").removesuffix(")")}
    code = code_of(module)
    for one in code.around(divisor):
        if isinstance(one, ast.If | ast.IfExp | ast.While | ast.BoolOp):
            text = ast.unparse(one.values[0] if isinstance(one, ast.BoolOp) else one.test)
            if any(name in text for name in names):
                return True
    return False


RULE = Rule(
    title="A division by a count that is zero, or can be",
    category="division_by_zero",
    why="A mean over no items ends the job: an evaluation set smaller than a batch, or an option "
    "that is 0.",
    fix="Divide by max(1, count), or report that the evaluation has no data.",
    source="Zhang et al., ICSE 2020, Table 1, Division by Zero, and section 3.3 on evaluation",
    check=_check,
    cases=examples("""
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
        -$ python train.py --n 0
        +$ python train.py --n 5
        ---- ignored if
        -print(100 // args.n)
        +print('mlp-%d' % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print('a' 'b%s' % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print(f'{1}-%d' % args.n)
        ---- ignored if
        -print(100 // args.n)
        +print(('a-' + '%d') % args.n)
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
        +validate(DataLoader([1, 2], batch_size=8))
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
        results = {}
        print(1 / len(results))  # <-
        ----
        $ python train.py --epochs 3
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--epochs', type=int)
        every = p.parse_args().epochs // 10
        for epoch in range(9):
            if epoch % every == 0:  # <-
                print(epoch)
        ---- ignored if
        -$ python train.py --epochs 3
        +$ python train.py --epochs 30
        ----
        results = {}
        print(1 / len(results) if results else 0)
        ----
        results = []
        try:
            print(1 / len(results))
        except ZeroDivisionError:
            print(0)
    """),
)
