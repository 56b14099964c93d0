"""A training program as an operator sees it: parsed, with its layers, losses and loops, and places to change.

A program is never run. The meaning of a name is inferred from how it is used: a model is what `.parameters()`
is asked of, a loss is what `.backward()` is called on.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from epochzero.errors import InputError

_Node = TypeVar("_Node", bound=ast.AST)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_CRITERION = re.compile(r"loss|criterion|cross_entropy", re.IGNORECASE)
_EVALUATION = re.compile(r"val|test|eval", re.IGNORECASE)
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Edit:
    """Text of a program from `start` to `end`, in characters, that becomes `new`."""

    start: int
    end: int
    new: str


def called(call: ast.Call) -> str:
    """The last part of what a call names: ``Linear`` of ``nn.Linear(2, 3)``."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def parsed(text: str) -> ast.Module:
    """The tree of a program; what its compiler would warn of is no matter of ours.

    Raises:
        SyntaxError: it does not parse.
        ValueError: it holds null characters.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


class TrainingProgram:
    """The text of a training program and what is known of it.

    Args:
        text: Python.
        name: of the program, for messages.

    Raises:
        InputError: it does not parse.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        try:
            self.tree = parsed(text)
        except SyntaxError as error:
            raise InputError(
                f"{name}, line {error.lineno} cannot be parsed: {error.msg}"
            ) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise InputError(f"{name} cannot be parsed: {error}") from error
        self._lines = [match[0] for match in _LINE.finditer(text)]
        self._parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    # -- Text ----------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self._lines:
            starts.append(starts[-1] + len(line))
        return starts

    def _at(self, line: int, column: int) -> int:
        """Where something stands, in characters; `ast` counts the columns of a line in bytes."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where the text of a node begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._at(node.lineno, node.col_offset)
        return start, self._at(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def operand(self, node: ast.expr) -> str:
        """The text of a node, in parentheses if adjacent text could bind to a part of it."""
        simple = isinstance(
            node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant
        )
        return self.source(node) if simple else f"({self.source(node)})"

    # -- Edits ---------------------------------------------------------------------------------

    def replaced(self, node: ast.expr | ast.stmt, new: str) -> Edit:
        """The node becomes other text."""
        return Edit(*self.span(node), new)

    def renamed(self, call: ast.Call, name: str) -> Edit:
        """Another function of the same module is called."""
        _, end = self.span(call.func)
        return Edit(end - len(called(call)), end, name)

    def with_argument(self, call: ast.Call, keyword: str, value: str) -> Edit:
        """A keyword gets this value, whether it is given yet or not."""
        given = argument(call, keyword)
        if given is not None:
            return self.replaced(given, value)
        _, end = self.span(call)
        last = max((self.span(each)[1] for each in _given(call)), default=end - 1)
        comma = ", " if _given(call) else ""
        return Edit(last, last, f"{comma}{keyword}={value}")

    def deleted(self, statement: ast.stmt) -> Edit:
        """The statement goes, with its lines where nothing else stands on them."""
        start, end = self.span(statement)
        if len(self._block(statement)) == 1:
            return Edit(start, end, "pass")
        assert statement.end_lineno is not None
        line_start, line_end = (
            self._starts[statement.lineno - 1],
            self._starts[statement.end_lineno],
        )
        alone = not self.text[line_start:start].strip() and not self.text[end:line_end].strip()
        return Edit(line_start, line_end, "") if alone else Edit(start, end, "pass")

    def followed(self, statement: ast.stmt, *lines: str) -> Edit:
        """Lines that stand after a statement, indented as it is."""
        _, end = self.span(statement)
        return Edit(end, end, "".join(f"\n{self._indent(statement)}{line}" for line in lines))

    def preceded(self, statement: ast.stmt, line: str) -> Edit:
        """A line that stands before a statement, indented as it is."""
        start, _ = self.span(statement)
        return Edit(start, start, f"{line}\n{self._indent(statement)}")

    def _indent(self, statement: ast.stmt) -> str:
        return self._lines[statement.lineno - 1][: statement.col_offset]

    def _block(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self._parents[statement]
        blocks = [getattr(parent, name, None) for name in _BLOCKS]
        return next((b for b in blocks if isinstance(b, list) and statement in b), [statement])

    # -- What there is -------------------------------------------------------------------------

    def all(self, kind: type[_Node]) -> list[_Node]:
        """The nodes of a kind, in the order of the text."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, kind)]
        return sorted(nodes, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls of functions, classes or methods with these names."""
        return [call for call in self.all(ast.Call) if called(call) in names]

    def parent(self, node: ast.AST) -> ast.AST:
        """The node that holds it; the module holds itself."""
        return self._parents.get(node, node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold it, from the inside."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement in which an expression stands."""
        return next(each for each in (node, *self.around(node)) if isinstance(each, ast.stmt))

    def within(self, node: ast.AST, function: str) -> bool:
        """Whether it stands in a function of that name."""
        return any(isinstance(o, ast.FunctionDef) and o.name == function for o in self.around(node))

    def alone(self, call: ast.Call) -> bool:
        """Whether a call is a statement of its own."""
        return isinstance(self.parent(call), ast.Expr)

    @cached_property
    def has_torch(self) -> bool:
        """Whether the name ``torch`` is imported."""
        aliases = [alias for node in self.all(ast.Import) for alias in node.names]
        return any(alias.name == "torch" and alias.asname is None for alias in aliases)

    @cached_property
    def models(self) -> frozenset[str]:
        """Names of models."""
        methods = self.calls("parameters", "named_parameters", "eval", "train", "state_dict")
        return frozenset(
            call.func.value.id
            for call in methods
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        ) - {"self"}

    @cached_property
    def training_loops(self) -> list[ast.For]:
        """The innermost loops that go backward."""
        found = []
        for call in self.calls("backward"):
            loops = [node for node in self.around(call) if isinstance(node, ast.For)]
            if loops and loops[0] not in found:
                found.append(loops[0])
        return found

    @cached_property
    def training_loaders(self) -> list[ast.Call]:
        """The data loaders that training loops iterate over; without any, those not named after an evaluation."""
        loaders = {
            call: " ".join(self.source(target) for target in self._targets(call))
            for call in self.calls("DataLoader")
        }
        iterated = {
            self.source(node)
            for loop in self.training_loops
            for node in ast.walk(loop.iter)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        found = [call for call, name in loaders.items() if name in iterated]
        return found or [call for call, name in loaders.items() if not _EVALUATION.search(name)]

    def _targets(self, call: ast.Call) -> list[ast.expr]:
        statement = self.statement(call)
        return statement.targets if isinstance(statement, ast.Assign) else []

    @cached_property
    def epoch_loops(self) -> list[ast.For]:
        """Loops over a range around all that trains: the outermost with a loop within, or that hand on a model."""
        found = []
        for loop in self.all(ast.For):
            counted = isinstance(loop.iter, ast.Call) and called(loop.iter) in ("range", "trange")
            inner = [node for part in loop.body for node in ast.walk(part)]
            trains = any(inner_loop in inner for inner_loop in self.training_loops) or any(
                isinstance(node, ast.Call) and "train" in called(node) and node.args
                for node in inner
            )
            nested = any(isinstance(node, ast.For) for node in self.around(loop))
            if counted and trains and not nested:
                found.append(loop)
        return found

    @cached_property
    def losses(self) -> list[ast.Call]:
        """The calls that compute the loss that goes backward, with prediction and target."""
        names = {
            call.func.value.id
            for call in self.calls("backward")
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        }
        assigned = [
            node.value
            for node in self.all(ast.Assign)
            if isinstance(node.targets[0], ast.Name) and node.targets[0].id in names
        ]
        inner = (each for value in assigned for each in ast.walk(value))
        return [
            call
            for call in inner
            if isinstance(call, ast.Call)
            and len(call.args) >= 2
            and _CRITERION.search(called(call))
        ]

    @cached_property
    def trained_calls(self) -> list[ast.Call]:
        """The calls of the model in the training loop, with its inputs."""
        within = [node for loop in self.training_loops for node in ast.walk(loop)]
        return [
            node
            for node in within
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in self.models
            and node.args
        ]

    @cached_property
    def layer_calls(self) -> list[ast.Call]:
        """The calls of layers in a ``forward``, with what each is given."""
        return [
            call
            for call in self.all(ast.Call)
            if isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "self"
            and call.args
            and self.within(call, "forward")
        ]

    def is_computed(self, given: ast.expr) -> bool:
        """Whether what a layer is given came out of another layer, and is not the input itself."""
        assigned = {
            name.id: name.lineno
            for name in reversed(self.all(ast.Name))
            if isinstance(name.ctx, ast.Store)
        }
        return any(
            isinstance(node, ast.Call)
            or (isinstance(node, ast.Name) and assigned.get(node.id, node.lineno) < node.lineno)
            for node in ast.walk(given)
        )


def argument(call: ast.Call, keyword: str, position: int | None = None) -> ast.expr | None:
    """What a call gives for a keyword, or at the position of it."""
    for each in call.keywords:
        if each.arg == keyword:
            return each.value
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    if position is None or starred or position >= len(call.args):
        return None
    return call.args[position]


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]
