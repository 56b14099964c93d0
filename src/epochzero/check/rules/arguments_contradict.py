"""The program's own checks reject a combination of arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from epochzero.check.program.operators import ARITHMETIC, COMPARE
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.rules.command_line import argument_claims

_DEEPEST = 8
_LARGEST = 1e12
_ENDINGS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"})


class _UnknownError(Exception):
    """An expression that is not fully known."""


class _LeftError(Exception):
    """The traversal may have left the function: what follows may not be reached."""


def _check(view: JobView) -> Claims:
    yield from argument_claims(view.program, {"conflict"}, "Remove one of them.")
    # The parser would have ended the job before.
    if any(problem.fatal for parsed in view.program.parsed for problem in parsed.problems):
        return
    entry = view.program.modules.get("__main__")
    if entry is None or entry.tree is None:
        return
    walk = _Walk(view.program, _options(view.program))
    if walk.options:
        with suppress(_LeftError):
            walk.block(entry, entry.tree.body, _namespaces(entry.tree), 0)
        yield from walk.found
    yield from _asserted(view.program, {one.place.line for one in walk.found})


def _asserted(program: Program, reported: set[int]) -> Iterator[Claim]:
    """Assertions that are known to fail, on values known from any source."""
    for call in program.calls:
        if call.name in _ENDINGS and not call.at.certain:
            return  # The program may have ended earlier.
        failed = call.name == "builtins.AssertionError" and "assert" in call.at.place.code
        if not failed or not call.at.certain or call.at.place.line in reported:
            continue
        if not guarded(call.at, AssertionError):
            yield claim_at(
                call.at,
                message=f"The program requires a condition that is false: {call.at.place.code}",
                consequence="AssertionError",
                fix="Pass arguments or a configuration that meet the condition.",
            )


def _options(program: Program) -> dict[str, object]:
    """The options that are known and that the program never changes."""
    changed: set[str] = set()
    for module in program.modules.values():
        code = code_of(module)
        # Options may be changed under names that are not in the source.
        if code.names & {"setattr", "vars", "delattr"}:
            return {}
        if code.attributes & {"__dict__", "set_defaults"}:
            return {}
        changed |= code.set_attributes
    return {
        name: value.value
        for name, value in program.options.items()
        if isinstance(value, Constant) and name not in changed
    }


def _namespaces(tree: ast.AST) -> frozenset[str]:
    """The names that always hold the parsed arguments."""
    parsed: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            called = node.value.func if isinstance(node.value, ast.Call) else None
            name = called.attr if isinstance(called, ast.Attribute) else ""
            for target in node.targets:
                first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
                holder = target if name == "parse_args" else first
                if name in ("parse_args", "parse_known_args") and isinstance(holder, ast.Name):
                    parsed.add(holder.id)
                elif isinstance(target, ast.Name):
                    others.add(target.id)
    return frozenset(parsed - others)


def _parsers(tree: ast.AST) -> frozenset[str]:
    """The names of parsers, whose ``error`` ends the program, unlike that of a logger."""
    return frozenset(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("ArgumentParser")
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _option_of(node: ast.AST, names: frozenset[str]) -> str:
    """``lr`` for ``args.lr``; empty for any other expression."""
    known = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return node.attr if known and node.value.id in names else ""  # type: ignore[attr-defined]


@dataclass
class _Walk:
    """Follow what certainly runs from the entry point, with the conditions that are known."""

    program: Program
    options: Mapping[str, object]
    found: list[Claim] = field(default_factory=list)

    def block(
        self, module: Module, body: Sequence[ast.stmt], names: frozenset[str], depth: int
    ) -> None:
        """Statements in order; `_LeftError` where what follows may not be reached."""
        for statement in body:
            if isinstance(statement, ast.Assert):
                self._refused(module, statement.test, statement, names, holds=False)
            elif isinstance(statement, ast.If):
                self._if(module, statement, names, depth)
            elif isinstance(statement, ast.Return | ast.Raise):
                self._calls(module, statement, names, depth)
                raise _LeftError
            elif isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
                if _leaves(statement):
                    raise _LeftError
                self._calls(module, statement, names, depth)
            elif not isinstance(statement, ast.FunctionDef | ast.ClassDef) and _leaves(statement):
                raise _LeftError

    def _if(self, module: Module, statement: ast.If, names: frozenset[str], depth: int) -> None:
        try:
            holds = bool(self._value(statement.test, names))
        except _UnknownError:
            if _leaves(statement):
                raise _LeftError from None
            return
        if holds and _refuses(statement.body, module):
            self._refused(module, statement.test, statement, names, holds=True)
            raise _LeftError
        self.block(module, statement.body if holds else statement.orelse, names, depth)

    def _calls(
        self, module: Module, statement: ast.stmt, names: frozenset[str], depth: int
    ) -> None:
        """Follow the functions of the same module that a statement calls by name."""
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            return
        assert module.tree is not None
        functions = [
            node
            for node in module.tree.body
            if isinstance(node, ast.FunctionDef) and node.name == value.func.id
        ]
        if len(functions) != 1 or functions[0].decorator_list or depth >= _DEEPEST:
            return
        function = functions[0]
        parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        bound = {
            parameter
            for parameter, given in zip(parameters, value.args, strict=False)
            if isinstance(given, ast.Name) and given.id in names
        }
        inside = (names - set(parameters)) | bound | _namespaces(function)
        try:
            self.block(module, function.body, frozenset(inside), depth + 1)
        except _LeftError:
            # A return leaves only the function.
            if self.found or _exits(function):
                raise

    def _refused(
        self,
        module: Module,
        test: ast.expr,
        statement: ast.stmt,
        names: frozenset[str],
        holds: bool,
    ) -> None:
        """A finding if the condition is known to be the rejected one and concerns arguments."""
        used = sorted(set(self._used(test, names)))
        try:
            if not used or bool(self._value(test, names)) is not holds:
                return
        except _UnknownError:
            return
        given = ", ".join(f"{name} = {self.options[name]!r}" for name in used)
        place = module.place(statement)
        refuses = "demands" if not holds else "refuses"
        self.found.append(
            Claim(
                severity="error",
                phase="initialization",
                place=place,
                message=f"The program {refuses} {ast.unparse(test)}, and {given}.",
                consequence="AssertionError" if not holds else _end(statement),
                fix="Pass arguments that are compatible: " + ", ".join(used) + ".",
            )
        )

    def _used(self, test: ast.expr, names: frozenset[str]) -> Iterator[str]:
        for node in ast.walk(test):
            if (name := _option_of(node, names)) in self.options:
                yield name

    # -- Conditions ------------------------------------------------------------------------------

    def _value(self, node: ast.expr, names: frozenset[str]) -> object:
        """The value of an expression.

        Raises:
            _UnknownError: it is not fully known.
        """
        try:
            return self._known(node, names)
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise _UnknownError from error

    def _known(self, node: ast.expr, names: frozenset[str]) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and node.id == "__name__":
            return "__main__"
        if (name := _option_of(node, names)) in self.options:
            return self.options[name]
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return [self._known(item, names) for item in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._known(node.operand, names)
        if isinstance(node, ast.BoolOp):
            return self._both(node, names)
        if isinstance(node, ast.Compare):
            return self._compared(node, names)
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            left, right = self._known(node.left, names), self._known(node.right, names)
            if all(isinstance(one, int | float) and abs(one) < _LARGEST for one in (left, right)):
                return ARITHMETIC[type(node.op)](left, right)  # type: ignore[arg-type]
        raise _UnknownError

    def _both(self, node: ast.BoolOp, names: frozenset[str]) -> object:
        value: object = None
        for part in node.values:
            value = self._known(part, names)
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def _compared(self, node: ast.Compare, names: frozenset[str]) -> bool:
        left = self._known(node.left, names)
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._known(right_node, names)
            if not COMPARE[type(kind)](left, right):
                return False
            left = right
        return True


_EXITS = ("exit", "_exit", "abort", "error", "fail")


def _is_exit(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return (node.func.id if isinstance(node.func, ast.Name) else name) in _EXITS


def _leaves(statement: ast.AST) -> bool:
    """Whether a statement may end the function or the program."""
    return any(
        isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue) or _is_exit(node)
        for node in ast.walk(statement)
    )


def _exits(function: ast.FunctionDef) -> bool:
    """Whether a function may end the program, not only itself."""
    return any(isinstance(node, ast.Raise) or _is_exit(node) for node in ast.walk(function))


def _refuses(body: Sequence[ast.stmt], module: Module) -> bool:
    """Whether a block certainly ends the program: ``raise``, ``parser.error``."""
    last = body[-1]
    if any(_leaves(statement) for statement in body[:-1]):
        return False
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return isinstance(last, ast.Raise)
    assert module.tree is not None
    owner = call.func.value
    return (
        call.func.attr == "error"
        and isinstance(owner, ast.Name)
        and owner.id in _parsers(module.tree)
    )


def _end(statement: ast.stmt) -> str:
    """How the job ends: the exception, if its message is written there."""
    last = statement.body[-1] if isinstance(statement, ast.If) else statement
    raised = last.exc if isinstance(last, ast.Raise) else None
    if isinstance(raised, ast.Call) and len(raised.args) == 1:
        message = raised.args[0]
        if isinstance(message, ast.Constant) and isinstance(message.value, str):
            return f"{ast.unparse(raised.func)}: {message.value}"
    return f"The job ends at: {ast.unparse(last).splitlines()[0][:200]}"


RULE = Rule(
    title="The program rejects this combination of arguments",
    category="illegal_argument",
    why="Programs check combinations of arguments after startup. If the arguments are known, so "
    "is the result of the check.",
    fix="Pass arguments that are compatible.",
    source="Zhang et al., ICSE 2020, section 3.3: Illegal Argument",
    check=_check,
    cases=examples("""
        $ torchrun --nproc_per_node=8 train.py
        import os

        world = int(os.environ['WORLD_SIZE'])
        def steps(batch):
            assert batch % world == 0  # <-
            return batch // world
        steps(500)
        ----
        $ torchrun --nproc_per_node=8 train.py
        import argparse
        import torch.distributed as dist

        p = argparse.ArgumentParser()
        p.add_argument('--batch-size', type=int, default=250)
        a = p.parse_args()
        dist.init_process_group('nccl')
        world = dist.get_world_size()
        assert a.batch_size % world == 0  # <-
        ----
        $ python train.py --low 5 --amp
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--low', type=int, default=1)
        p.add_argument('--high', type=int, default=9)
        p.add_argument('--amp', action='store_true')
        def check(args):
            if args.amp and args.low > 3:  # <-
                raise ValueError('no')
            assert args.low < args.high, 'order'


        args = p.parse_args()
        check(args)
        ---- caught if
        -$ python train.py --low 5 --amp
        +$ python train.py --low 9
        @@
        -    if args.amp and args.low > 3:  # <-
        +    if args.amp and args.low > 3:
        @@
        -    assert args.low < args.high, 'order'
        +    assert args.low < args.high, 'order'  # <-
        ---- ignored if
        -$ python train.py --low 5 --amp
        +$ python train.py --low 3 --amp
        ----
        $ python train.py --amp
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--low', type=int, default=1)
        p.add_argument('--high', type=int, default=9)
        p.add_argument('--amp', action='store_true')
        args = p.parse_args()
        if args.amp and args.high % 2:  # <-
            p.error('--amp needs an even --high')
        ----
        import os


        def run():
            if os.path.exists('a'):
                return
            assert 1 > 2


        run()
        ----
        import os

        if os.path.exists('a'):
            assert 1 > 2
        ----
        try:
            assert 1 > 2
        except AssertionError:
            pass
        ----
        $ python train.py --low 9
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--low', type=int, default=1)
        p.add_argument('--high', type=int, default=9)
        p.add_argument('--amp', action='store_true')
        args = p.parse_args()
        args.low = 0
        assert args.low < args.high
        ---- ignored if
        -args.low = 0
        +import os
        +if os.path.exists('x'):
        +    exit()
    """),
)
