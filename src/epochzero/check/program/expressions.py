"""What expressions are known to be."""

from __future__ import annotations

import ast
import builtins
import enum
import operator
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from epochzero.check.operators import ARITHMETIC
from epochzero.check.program import failing, methods
from epochzero.check.program.core import Arguments, Flow, PathEnds
from epochzero.check.program.counted import FIRST_RANK, Counted, chosen, computed
from epochzero.check.program.heap import (
    DIFFERS,
    Bound,
    Box,
    Class,
    Function,
    Made,
    Member,
    Object,
    Opened,
    Scope,
    Super,
    V,
    is_enumeration,
    join,
    published,
)
from epochzero.check.program.ranks import is_first_rank
from epochzero.check.program.tensors import results
from epochzero.check.program.tensors.machine import Tensors
from epochzero.check.program.texts import as_text, concat, join_paths, percent, shown
from epochzero.check.program.values import (
    Anything,
    Constant,
    External,
    Items,
    Raises,
    Text,
    Value,
    Variable,
)

__all__ = ["Expressions"]

MOST_UNROLLED = 16
"""Known items of a comprehension or loop that are walked one by one."""
_LARGEST_NUMBER = 1 << 64
_LONGEST_REPEAT = 1000
_LONGEST_FORMAT = 8
"""Of a format specification that is tried: no width in it is large."""
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)

_BUILTINS = frozenset(dir(builtins))
_BINARY: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], object]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_KNOWN_NAMES: dict[str, Constant] = {
    "os.sep": Constant("/"),
    "os.path.sep": Constant("/"),
    "os.pathsep": Constant(":"),
    "os.linesep": Constant("\n"),
    "os.name": Constant("posix"),
    "sys.platform": Constant("linux"),
    "typing.TYPE_CHECKING": Constant(False),
    "typing_extensions.TYPE_CHECKING": Constant(False),
}
_NAMED_TUPLE = namedtuple("_NAMED_TUPLE", ())
_PARTS_OF_PATHS = {"parent": "folder", "name": "name", "stem": "stem", "suffix": "suffix"}


class Expressions(Tensors):
    """Evaluates expressions."""

    def evaluate(self, node: ast.expr) -> V:
        """The value of an expression, with the events of finding it."""
        self.step()
        found = _EVALUATORS.get(type(node))
        return Anything("an expression of a newer Python") if found is None else found(self, node)

    # -- Names --------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> V:
        return self.named(node.id, node)

    def named(self, name: str, node: ast.AST) -> V:
        """What a name means here."""
        scope: Scope | None = self.frame.scope
        assert scope is not None
        if name in scope.elsewhere:
            scope = scope.elsewhere[name]
        start = scope
        while scope is not None:
            if name in scope.names and (scope is start or not scope.is_class):
                return scope.names[name]
            if name in scope.own:
                return self._unbound(name, scope, node)
            scope = scope.parent
        if name in _BUILTINS:
            return External(f"builtins.{name}")
        return Anything(f"{name} is not known")

    def _unbound(self, name: str, scope: Scope, node: ast.AST) -> V:
        """A name that is bound elsewhere in its scope, but on no way that leads here."""
        if scope.parent is None:
            if name in _BUILTINS:
                return External(f"builtins.{name}")
            return self.fails("name", NameError, f"name '{name}' is not defined", node)
        if scope is not self.frame.scope:
            return Anything(f"{name} is not known")
        said = f"cannot access local variable '{name}' where it is not associated with a value"
        return self.fails("name", UnboundLocalError, said, node)

    def _constant(self, node: ast.Constant) -> V:
        if node.value is Ellipsis:
            return Anything("an ellipsis")
        return self.literal(node, node.value)

    # -- Attributes and items -----------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> V:
        owner = self._owner(node.value)
        return self.attribute(owner, node.attr, node)

    def _owner(self, node: ast.expr) -> V:
        """The value before a dot; of a chain of a library's names only the whole is looked up."""
        if isinstance(node, ast.Attribute):
            owner = self._owner(node.value)
            if isinstance(owner, External):
                self.step()
                return self.external_attribute(owner, node.attr)
            return self.attribute(owner, node.attr, node)
        return self.evaluate(node)

    def external_attribute(self, owner: External, name: str) -> V:
        """A name of a library; of a few of the standard library the value."""
        dotted = f"{owner.name}.{name}"
        if dotted == "sys.argv":
            return self.arguments
        if dotted == "sys.version_info" and self.target.python is not None:
            return Box.of("tuple", (Constant(one) for one in self.target.python))
        if owner.name == "absl.flags.FLAGS":
            return self.flag(name) or Anything(f"the flag {name}")
        return _KNOWN_NAMES.get(dotted) or External(dotted)

    def attribute(self, owner: V, name: str, node: ast.AST, called: bool = False) -> V:
        """An attribute of a value.

        Args:
            owner: the value.
            name: of the attribute.
            node: where.
            called: whether it is about to be called, which is an event of its own.
        """
        if not called and (known := results.attribute_of(owner, name)) is not None:
            return known
        match owner:
            case External():
                self.looked(owner, name, node, item=False, found=None)
                return self.external_attribute(owner, name)
            case Opened():
                return self._of_module(owner, name, node)
            case Object():
                return self._of_object(owner, name, node, called)
            case Class():
                return self._of_class(owner, name, node)
            case Super():
                return self._of_super(owner, name)
            case Made():
                return self._of_made(owner, name, node, called)
            case Member():
                return Member(owner, name)
            case Function(node=ast.FunctionDef(name=written)) if name == "__name__":
                return Constant(written)
            case Function() if name == "remote":
                return owner  # a task of Ray, called with the function's own arguments
            case Constant() | Text() | Box() if failing.has_attribute(owner, name) is False:
                kind = "none" if failing.is_none(owner) else "attribute"
                said = f"'{failing.type_name(owner)}' object has no attribute '{name}'"
                return self.fails(kind, AttributeError, said, node)
            case Constant() | Text() | Box() | Items() if called:
                return Bound(owner, name)
            case Anything() if called:
                return Member(owner, name)
        return Anything(f"attribute {name} of what is not known")

    def _of_module(self, owner: Opened, name: str, node: ast.AST) -> V:
        if name in owner.names:
            return owner.names[name]
        if name.startswith("__") or "__getattr__" in owner.names:
            return Anything(f"{owner.name}.{name}")
        self.looked(published(owner), name, node, item=False, found=None)
        if owner.is_closed and self._is_surely_missing(owner, name):
            state = "partially initialized module" if owner.name in self.importing else "module"
            said = f"{state} '{owner.name}' has no attribute '{name}'"
            return self.fails("attribute", AttributeError, said, node)
        return Anything(f"{owner.name} has no {name} that is known")

    def _is_surely_missing(self, owner: Opened, name: str) -> bool:
        """Whether a name is none of a package's modules, or one that nobody has imported.

        What is compiled does not lie with the source.
        """
        assert owner.module is not None
        is_package = owner.module.file.name == "__init__.py"
        return not is_package or self.modules.find(f"{owner.name}.{name}") is not None

    def _of_object(self, owner: Object, name: str, node: ast.AST, called: bool) -> V:
        if name in owner.attributes:
            return owner.attributes[name]
        if name == "__class__":
            return owner.cls
        if name == "__dict__":
            # Whatever is done to it changes the object.
            owner.cls.opaque = True
        if (found := self.in_class(owner.cls.line(), name)) is not None:
            return self._bound(found, owner, owner.cls, node)
        if owner.cls.externals() == ("typing.NamedTuple",) and not hasattr(_NAMED_TUPLE, name):
            said = f"'{failing.type_name(owner)}' object has no attribute '{name}'"
            return self.fails("attribute", AttributeError, said, node)
        if owner.cls.externals():
            member = Member(owner, name)
            return member if called else Anything(f"{name} of {owner.cls.name}")
        if name.startswith("__") or self._answers_any(owner.cls):
            return Anything(f"{name} of {owner.cls.name}")
        self.looked(owner, name, node, item=False, found=False)
        return Anything(f"{owner.cls.name} has no {name} that is known")

    def _answers_any(self, cls: Class) -> bool:
        """Whether objects of a class may have attributes that are not seen."""
        names = ("__getattr__", "__getattribute__", "__slots__")
        return any(one.opaque for one in cls.line()) or any(
            self.in_class(cls.line(), name) is not None for name in names
        )

    def in_class(self, line: Iterable[Class], name: str) -> V | None:
        """A name of the first of several classes that has it."""
        return next((one.names[name] for one in line if name in one.names), None)

    def _bound(self, found: V, receiver: V, cls: Class, node: ast.AST) -> V:
        if not isinstance(found, Function):
            return found
        if found.kind == "property":
            where = node if isinstance(node, ast.expr) else ast.Constant(None)
            return self.apply(Bound(receiver, found), Arguments(), where)
        if found.kind == "staticmethod":
            return found
        return Bound(cls if found.kind == "classmethod" else receiver, found)

    def _of_class(self, owner: Class, name: str, node: ast.AST) -> V:
        found = self.in_class(owner.line(), name)
        if is_enumeration(owner):
            return self._of_enumeration(owner, name, found, node)
        if found is None:
            if name == "__name__":
                return Constant(owner.name.rpartition(".")[2])
            bases = owner.externals()
            if bases and bases[0] != "?":
                return External(f"{bases[0]}.{name}")
            return Anything(f"{owner.name}.{name}")
        if isinstance(found, Function) and found.kind == "classmethod":
            return Bound(owner, found)
        return found

    def _of_enumeration(self, owner: Class, name: str, found: V | None, node: ast.AST) -> V:
        """A member of an enumeration: an object with a name and a value."""
        if isinstance(found, Function):
            return Bound(owner, found) if found.kind == "classmethod" else found
        if found is not None and not name.startswith("_"):
            if name not in owner.members:
                attributes = {"name": Constant(name), "value": found}
                owner.members[name] = Object(owner, (), {}, self.place(node), attributes)
            return owner.members[name]
        if found is None and not owner.opaque and not hasattr(enum.Enum, name):
            said = f"type object '{owner.name.rpartition('.')[2]}' has no attribute '{name}'"
            return self.fails("attribute", AttributeError, said, node)
        return Anything(f"{owner.name}.{name}")

    def _of_super(self, owner: Super, name: str) -> V:
        receiver = owner.receiver
        cls = receiver.cls if isinstance(receiver, Object) else receiver
        line = cls.line() if isinstance(cls, Class) else [owner.owner]
        after = line[line.index(owner.owner) + 1 :] if owner.owner in line else []
        if (found := self.in_class(after, name)) is not None:
            return self._bound(found, receiver, owner.owner, ast.Constant(None))
        return Member(receiver, name)

    def _of_made(self, owner: Made, name: str, node: ast.AST, called: bool) -> V:
        if name in owner.attributes:
            return self._read(owner.attributes[name], node)
        if name == "__dict__":
            owner.closed = False
        text = as_text(owner)
        if text is not None and (name in _PARTS_OF_PATHS or name == "parents"):
            return methods.path_attribute(text, name)
        if not called:
            there = False if owner.closed and not name.startswith("_") else None
            self.looked(owner, name, node, item=False, found=there)
        return Member(owner, name)

    def _subscript(self, node: ast.Subscript) -> V:
        owner = self.evaluate(node.value)
        key = self.evaluate(node.slice)
        return self.item(owner, key, node)

    def item(self, owner: V, key: V, node: ast.AST) -> V:
        """What ``owner[key]`` gives."""
        if isinstance(owner, Object):
            getter = self.in_class(owner.cls.line(), "__getitem__")
            if isinstance(getter, Function) and isinstance(node, ast.expr):
                return self.apply(Bound(owner, getter), Arguments([key]), node)
            return Anything(f"an item of {owner.cls.name}")
        if owner == External("os.environ"):
            return self._variable(key, node)
        if isinstance(owner, (Box, Items)):
            return self._item_of_container(owner, key, node)
        if (modules := results.modules_of(owner)) is not None:
            return self._item_of_container(modules, key, node)
        if (part := results.item_of(owner, key)) is not None:
            return part
        if said := failing.subscripted(owner):
            kind = "none" if failing.is_none(owner) else "type"
            return self.fails(kind, TypeError, said, node)
        if isinstance(owner, Constant) and isinstance(key, Constant):
            try:
                return Constant(owner.value[key.value])  # type: ignore[index]
            except IndexError as error:
                return self.fails("index", IndexError, str(error), node)
            except TypeError as error:
                return self.fails("type", TypeError, str(error), node)
        if isinstance(owner, Made) and isinstance(key, Constant) and owner.attributes:
            found = key.value in owner.attributes
            there = True if found else False if owner.closed else None
            self.looked(owner, str(key.value), node, item=True, found=there)
            if isinstance(key.value, str) and found:
                return self._read(owner.attributes[key.value], node)
        elif isinstance(owner, Made) and isinstance(key, Constant):
            self.looked(owner, str(key.value), node, item=True, found=None)
        if isinstance(owner, (Made, Member)):
            return Member(owner, f"[{_key_text(key)}]")
        if isinstance(owner, (External, Class)):
            return owner  # a generic type: ``Dataset[int]``
        return Anything("an item of what is not known")

    def _read(self, value: V, node: ast.AST) -> V:
        """A value of a configuration, which may fail where it is read."""
        match value:
            case Raises(error=error, message=message):
                return self.fails("configuration", error, message, node)
            case Variable(name=name, whole=whole):
                found = self._variable(Constant(name), node)
                return found if whole else Anything(f"a text with the variable {name}")
        return value

    def _variable(self, key: V, node: ast.AST) -> V:
        """A variable of the environment, which fails when it is not set."""
        if not isinstance(key, Constant) or not isinstance(key.value, str):
            return Anything("a variable of the environment")
        value, found = self.variable(key.value)
        self.looked(External("os.environ"), key.value, node, item=True, found=found)
        return value

    def variable(self, name: str) -> tuple[V, bool | None]:
        """The value of a variable of the environment, and whether it is set (None: not known)."""
        if name in self.environment:
            return self.environment[name], True
        if name in self.job.environment:
            given = self.job.environment[name]
            return (Anything(f"the variable {name}") if given is None else Constant(given)), True
        known = self.target.environment
        if known is not None and name in known:
            return Constant(known[name]), True
        return Anything(f"the variable {name}"), None if known is None else False

    def _item_of_container(self, owner: Box | Items, key: V, node: ast.AST) -> V:
        content = owner.content if isinstance(owner, Box) else owner
        if owner.kind == "dict":
            found, value = _in_dictionary(content.keys, content.values, key, content.complete)
            if isinstance(key, Constant) and isinstance(key.value, str):
                self.looked(owner, key.value, node, item=True, found=found)
            return value
        if isinstance(key, Constant) and isinstance(key.value, int):
            values, at = content.values, int(key.value)
            if 0 <= at < len(values) or (content.complete and -len(values) <= at < 0):
                return values[at]
            if content.complete and (owner.kind == "tuple" or not self.rounds):
                said = f"{owner.kind} index out of range"
                return self.fails("index", IndexError, said, node)
        if isinstance(key, Made) and key.name == "builtins.slice" and content.complete:
            bounds: list[Any] = [part.value for part in key.arguments if isinstance(part, Constant)]
            if len(bounds) == 3 and all(b is None or isinstance(b, int) for b in bounds):
                if bounds[2] == 0:
                    return Anything("a slice with a step of 0")
                return Box.of(owner.kind, content.values[slice(*bounds)])
        return Anything("an item that is not known")

    def _slice(self, node: ast.Slice) -> V:
        parts = [Constant(None) if p is None else self.evaluate(p) for p in
                 (node.lower, node.upper, node.step)]  # fmt: skip
        if all(isinstance(part, Constant) for part in parts):
            return Made("builtins.slice", tuple(parts))
        return Anything("a slice")

    # -- Operators ----------------------------------------------------------------------------

    def _binary(self, node: ast.BinOp) -> V:
        # A long chain of + is walked in a loop, not by recursion.
        chain: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            chain.append(left)
            left = left.left
        value = self.evaluate(left)
        for one in reversed(chain):
            value = self.operate(one.op, value, self.evaluate(one.right), one)
        return value

    def operate(self, op: ast.operator, left: V, right: V, node: ast.AST) -> V:
        """What an operator gives."""
        if said := failing.refused(op, left, right):
            is_none = failing.is_none(left) or failing.is_none(right)
            return self.fails("none" if is_none else "type", TypeError, said, node)
        if isinstance(op, _DIVISIONS) and _is_number(left) and _is_zero(right):
            return self.fails("zero", ZeroDivisionError, "division by zero", node)
        if isinstance(left, Constant) and isinstance(op, ast.Mod) and isinstance(left.value, str):
            return percent(left, right)
        if isinstance(left, Constant) and isinstance(right, Constant):
            return _computed(_BINARY.get(type(op)), left, right)
        if (by_round := computed(ARITHMETIC.get(type(op)), left, right)) is not None:
            return by_round
        if (tensor := self.operated(op, left, right, node)) is not None:
            return tensor
        if isinstance(op, ast.Div) and isinstance(left, Made) and as_text(left) is not None:
            return Made(left.name, (join_paths([left, right]),), {}, left.place)
        if isinstance(op, ast.Div) and isinstance(right, Made) and as_text(right) is not None:
            return Made(right.name, (join_paths([left, right]),), {}, right.place)
        if isinstance(op, ast.Add):
            if isinstance(left, (Box, Items)) and isinstance(right, (Box, Items)):
                return _extended(left, right)
            if (as_text(left) or as_text(right)) and not isinstance(left, (Box, Made)):
                return concat([left, right])
        if isinstance(op, ast.BitOr) and isinstance(left, (External, Class)):
            return left  # a type annotation that is evaluated
        return Anything("computed from what is not known")

    def _unary(self, node: ast.UnaryOp) -> V:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            known = self.truth(value)
            if known is not None:
                return Constant(not known)
            return computed(operator.not_, value) or Anything("a condition that is not known")
        if isinstance(value, Constant):
            try:
                return Constant(_UNARY[type(node.op)](value.value), value.origin)  # type: ignore[arg-type]
            except TypeError:
                return Anything("computed from what does not fit")
        return Anything("computed from what is not known")

    def _all_or_any(self, node: ast.BoolOp) -> V:
        stops = isinstance(node.op, ast.Or)
        values: list[V] = []
        with self.under():
            for one in node.values:
                value = self.evaluate(one)
                known = self.truth(value)
                values.append(FIRST_RANK if known is None and is_first_rank(one) else value)
                if known is stops or one is node.values[-1]:
                    break
                if known is None:
                    # What stands behind is evaluated only perhaps.
                    self.certain, self.is_doubtful = False, True
                else:
                    values.pop()
        if len(values) == 1:
            return values[0]
        if (by_round := chosen(stops, values)) is not None:
            return by_round
        last = self.truth(values[-1])
        if (
            last is stops
            and isinstance(values[-1], Constant)
            and isinstance(values[-1].value, bool)
        ):
            return values[-1]
        return DIFFERS

    def _compare(self, node: ast.Compare) -> V:
        left = self.evaluate(node.left)
        result: bool | None = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            if said := failing.refused(op, left, right):
                is_none = failing.is_none(left) or failing.is_none(right)
                return self.fails("none" if is_none else "type", TypeError, said, node)
            by_round = computed(_COMPARE.get(type(op)), left, right)
            if by_round is not None and len(node.ops) == 1:
                return by_round
            one = self.compared(op, left, right)
            if one is False:
                return Constant(False)
            result = None if one is None else result
            left = right
        return Anything("a comparison with what is not known") if result is None else Constant(True)

    def compared(self, op: ast.cmpop, left: V, right: V) -> bool | None:
        """Whether a comparison holds; None when it is not known."""
        negated = isinstance(op, (ast.IsNot, ast.NotIn))
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = _identical(left, right)
            return None if same is None else same is not negated
        if isinstance(op, (ast.In, ast.NotIn)):
            there = self._contained(left, right)
            return None if there is None else there is not negated
        if isinstance(left, Constant) and isinstance(right, Constant):
            try:
                return bool(_COMPARE[type(op)](left.value, right.value))
            except TypeError:
                return None
        if isinstance(left, Box) and isinstance(right, Box) and type(op) in _COMPARE:
            mine, other = _plain_tuple(left), _plain_tuple(right)
            if mine is not None and other is not None:
                return bool(_COMPARE[type(op)](mine, other))
            return None
        if isinstance(op, (ast.Eq, ast.NotEq)) and _identical(left, right) is False:
            return isinstance(op, ast.NotEq)
        return None

    def _contained(self, one: V, container: V) -> bool | None:
        if isinstance(container, Constant) and isinstance(one, Constant):
            try:
                return one.value in container.value  # type: ignore[operator]
            except TypeError:
                return None
        if container == External("os.environ") and isinstance(one, Constant):
            return self.variable(str(one.value))[1]
        if isinstance(container, (Box, Items)) and isinstance(one, Constant):
            content = container.content if isinstance(container, Box) else container
            known = content.keys if container.kind == "dict" else content.values
            if any(isinstance(key, Constant) and key.value == one.value for key in known):
                return True
            if content.complete and all(isinstance(key, Constant) for key in known):
                return False
        return None

    def truth(self, value: V) -> bool | None:
        """Whether a value counts as true; None when it is not known."""
        if isinstance(value, Constant):
            return bool(value.value)
        if isinstance(value, (Box, Items)):
            content = value.content if isinstance(value, Box) else value
            return True if content.values else False if content.complete else None
        if isinstance(value, Text):
            return True if any(isinstance(part, str) and part for part in value.parts) else None
        if isinstance(value, Counted):
            return value.truth
        if isinstance(value, (Function, Class, Opened, Bound)):
            return True
        if isinstance(value, Object) and not value.cls.externals():
            line = value.cls.line()
            if self.in_class(line, "__bool__") is None and self.in_class(line, "__len__") is None:
                return True
        return None

    def _choice(self, node: ast.IfExp) -> V:
        known = self.truth(self.evaluate(node.test))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse)
        values: list[V] = []

        def way(one: ast.expr) -> Callable[[], int]:
            def walk() -> int:
                values.append(self.evaluate(one))
                return Flow.NEXT

            return walk

        self.either(way(node.body), way(node.orelse))
        if not values:
            raise PathEnds
        return values[0] if len(values) == 1 else join(*values)

    # -- Texts and containers -----------------------------------------------------------------

    def _joined(self, node: ast.JoinedStr) -> V:
        parts: list[str | V] = []
        for one in node.values:
            if isinstance(one, ast.Constant):
                parts.append(str(one.value))
            elif isinstance(one, ast.FormattedValue):
                parts.append(self._formatted(one))
        value = concat(parts)
        return Constant(value.value, self.place(node)) if isinstance(value, Constant) else value

    def _formatted(self, node: ast.FormattedValue) -> str | V:
        value = self.evaluate(node.value)
        if node.format_spec is None:
            return shown(value, node.conversion)
        spec = self.evaluate(node.format_spec)
        if isinstance(spec, Constant):
            if isinstance(value, (Constant, Box)) and node.conversion == -1:
                self._format(value, str(spec.value), node)
            return shown(value, node.conversion, str(spec.value))
        return Anything("formatted")

    def _format(self, value: Constant | Box, spec: str, node: ast.FormattedValue) -> None:
        """What of a format specification does not fit its value."""
        if isinstance(value, Constant):
            try:
                format(value.value, spec if len(spec) < _LONGEST_FORMAT else "")
            except (TypeError, ValueError) as error:
                kind = "none" if failing.is_none(value) else "type"
                self.fails(kind, type(error), str(error), node)
        elif spec and value.mirrors is None:
            said = f"unsupported format string passed to {value.kind}.__format__"
            self.fails("type", TypeError, said, node)

    def _formatted_alone(self, node: ast.FormattedValue) -> V:
        return concat([self._formatted(node)])

    def _container(self, node: ast.Tuple | ast.List | ast.Set) -> V:
        kind = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}[type(node)]
        values: list[V] = []
        complete = True
        for one in node.elts:
            if isinstance(one, ast.Starred):
                items, whole, _ = self.iterated(self.evaluate(one.value), one)
                values += items
                complete = complete and whole
            else:
                values.append(self.evaluate(one))
        return Box.of(kind, values, complete=complete)

    def _dictionary(self, node: ast.Dict) -> V:
        found: list[tuple[V, V]] = []
        complete = True
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                whole, pairs = _pairs(self.evaluate(value_node))
                complete = complete and whole
            else:
                pairs = [(self.evaluate(key_node), self.evaluate(value_node))]
            found += pairs
        return _dictionary_of(found, complete)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> V:
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        values: list[V] = []
        complete = self._rounds(node.generators, lambda: values.append(self.evaluate(node.elt)))
        return Box.of(kind, values, complete=complete)

    def _dictionary_comprehension(self, node: ast.DictComp) -> V:
        pairs: list[tuple[V, V]] = []
        complete = self._rounds(
            node.generators,
            lambda: pairs.append((self.evaluate(node.key), self.evaluate(node.value))),
        )
        return _dictionary_of(pairs, complete)

    def _rounds(self, generators: Sequence[ast.comprehension], body: Callable[[], None]) -> bool:
        """Walks a comprehension.

        Returns:
            whether all its rounds are known.
        """
        scope = self.frame.scope
        inner = Scope({}, scope.module, scope)
        first = self.evaluate(generators[0].iter)
        self.frame.scope = inner
        self.loops += 1
        try:
            return self._generate(generators, first, body)
        finally:
            self.loops -= 1
            self.frame.scope = scope

    def _generate(
        self, generators: Sequence[ast.comprehension], over: V, body: Callable[[], None]
    ) -> bool:
        one, *rest = generators
        items, complete, some = self.iterated(over, one.iter)
        if not complete or len(items) > MOST_UNROLLED:
            items, complete = items[:1] or [Anything("an item of what is not known")], False
        with self.under(certain=some):
            for item in items:
                self.assign(one.target, item)
                holds = [self.truth(self.evaluate(test)) for test in one.ifs]
                if False in holds:
                    continue
                with self.under(certain=None not in holds):
                    complete = complete and None not in holds
                    if rest:
                        over = self.evaluate(rest[0].iter)
                        complete = self._generate(rest, over, body) and complete
                    else:
                        body()
        return complete

    # -- Functions and calls ------------------------------------------------------------------

    def _lambda(self, node: ast.Lambda) -> V:
        return self.function(node, "<lambda>")

    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str
    ) -> Function:
        """A function as it is where it is defined, its defaults evaluated."""
        inside = f"{self.frame.name}." if self.frame.name else ""
        return Function(
            node,
            f"{self.module.name}.{inside}{name}",
            self.frame.scope,
            tuple(self.evaluate(one) for one in node.args.defaults),
            tuple(None if one is None else self.evaluate(one) for one in node.args.kw_defaults),
        )

    def _call(self, node: ast.Call) -> V:
        if isinstance(node.func, ast.Attribute):
            owner = self._owner(node.func.value)
            callee = self.attribute(owner, node.func.attr, node.func, called=True)
        else:
            callee = self.evaluate(node.func)
        return self.apply(callee, self._arguments(node), node)

    def _arguments(self, node: ast.Call) -> Arguments:
        given = Arguments()
        for one in node.args:
            if isinstance(one, ast.Starred):
                items, whole, _ = self.iterated(self.evaluate(one.value), one)
                given.positional += items
                given.complete = given.complete and whole
            else:
                given.positional.append(self.evaluate(one))
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                given.keywords[keyword.arg] = value
                continue
            whole, pairs = _pairs(value)
            given.complete = given.complete and whole
            for key, one_value in pairs:
                if isinstance(key, Constant) and isinstance(key.value, str):
                    given.keywords[key.value] = one_value
                else:
                    given.complete = False
        return given

    def _starred(self, node: ast.Starred) -> V:
        self.evaluate(node.value)
        return Anything("unpacked")

    def _walrus(self, node: ast.NamedExpr) -> V:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _await(self, node: ast.Await) -> V:
        return self.evaluate(node.value)

    def _yield(self, node: ast.Yield) -> V:
        value = Constant(None) if node.value is None else self.evaluate(node.value)
        self.frame.yields.append(value)
        if (self.certain, self.loops) != self.frame.start:
            self.frame.all_yielded = False
        return Anything("what is sent to a generator")

    def _yield_from(self, node: ast.YieldFrom) -> V:
        items, complete, _ = self.iterated(self.evaluate(node.value), node)
        self.frame.yields += items
        if not complete or (self.certain, self.loops) != self.frame.start:
            self.frame.all_yielded = False
        return Anything("what a generator returns")


_EVALUATORS: dict[type[ast.expr], Callable[..., V]] = {
    ast.Name: Expressions._name,
    ast.Constant: Expressions._constant,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._all_or_any,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._choice,
    ast.JoinedStr: Expressions._joined,
    ast.FormattedValue: Expressions._formatted_alone,
    ast.Tuple: Expressions._container,
    ast.List: Expressions._container,
    ast.Set: Expressions._container,
    ast.Dict: Expressions._dictionary,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dictionary_comprehension,
    ast.Lambda: Expressions._lambda,
    ast.Call: Expressions._call,
    ast.Starred: Expressions._starred,
    ast.NamedExpr: Expressions._walrus,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
}


def _computed(
    function: Callable[[Any, Any], object] | None, left: Constant, right: Constant
) -> Value:
    """An operator on constants, within bounds: no number or text grows without limit."""
    if function is None or any(_is_large(one.value) for one in (left, right)):
        return Anything("computed from large values")
    if function in (operator.pow, operator.lshift) and not _is_small(right.value):
        return Anything("computed from large values")
    if function is operator.mul and isinstance(left.value, (str, bytes)) != isinstance(
        right.value, (str, bytes)
    ):
        number = right.value if isinstance(left.value, (str, bytes)) else left.value
        if not isinstance(number, int) or number > _LONGEST_REPEAT:
            return Anything("a text that is too long")
    try:
        result = function(left.value, right.value)
    except (TypeError, ValueError, ArithmeticError):
        return Anything("computed from what does not fit")
    if isinstance(result, (str, bytes, int, float, complex)):
        return Constant(result, left.origin or right.origin)
    return Anything("computed from what does not fit")


def _is_number(value: V) -> bool:
    return isinstance(value, Counted) or (
        isinstance(value, Constant) and isinstance(value.value, (int, float))
    )


def _is_zero(value: V) -> bool:
    return _is_number(value) and isinstance(value, Constant) and not value.value


def _is_large(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) > _LARGEST_NUMBER
    return isinstance(value, (str, bytes)) and len(value) > 100_000


def _is_small(value: object) -> bool:
    return isinstance(value, (int, float)) and -64 <= value <= 64


def _identical(left: V, right: V) -> bool | None:
    """Whether two values are one; None when it is not known."""
    if left is right and not isinstance(left, Anything):
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        return type(left.value) is type(right.value) and left.value == right.value
    if isinstance(left, Object) and isinstance(right, Object) and is_enumeration(left.cls):
        return False if left.cls is right.cls and left.cls.members else None
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Constant) and one.value is None:
            # What exists is not None; what a library gave may be.
            made = isinstance(other, (Box, Items, Text, Function, Class, Object, Opened, Bound))
            return False if made else None
    return None


def _plain_tuple(box: Box) -> tuple[int, ...] | None:
    """The numbers of a tuple, such as a version."""
    numbers = [
        one.value
        for one in box.content.values
        if isinstance(one, Constant) and isinstance(one.value, int)
    ]
    known = box.kind == "tuple" and box.content.complete
    return tuple(numbers) if known and len(numbers) == len(box.content.values) else None


def _dictionary_of(pairs: Sequence[tuple[V, V]], complete: bool) -> Box:
    """A dictionary; two constants of the same value are one key wherever they are written."""
    entries: dict[Constant, V] = {}
    others: list[tuple[V, V]] = []
    for key, value in pairs:
        if isinstance(key, Constant):
            entries[Constant(key.value)] = value
        else:
            others.append((key, value))
    unique = [*entries.items(), *others]
    return Box.of("dict", (v for _, v in unique), (k for k, _ in unique), complete)


def _key_text(key: V) -> str:
    return repr(key.value)[:40] if isinstance(key, Constant) else ""


def _in_dictionary(
    keys: Sequence[V], values: Sequence[V], key: V, complete: bool
) -> tuple[bool | None, V]:
    if not isinstance(key, Constant):
        return None, Anything("an item whose key is not known")
    for one, value in zip(keys, values, strict=True):
        if isinstance(one, Constant) and one.value == key.value:
            return True, value
    sure = complete and all(isinstance(one, Constant) for one in keys)
    return False if sure else None, Anything(f"an item with the key {_key_text(key)}")


def _pairs(value: V) -> tuple[bool, list[tuple[V, V]]]:
    """The entries of a dictionary, and whether these are all."""
    if isinstance(value, (Box, Items)) and value.kind == "dict":
        content = value.content if isinstance(value, Box) else value
        return content.complete, list(zip(content.keys, content.values, strict=True))
    return False, []


def _extended(left: Box | Items, right: Box | Items) -> V:
    one = left.content if isinstance(left, Box) else left
    other = right.content if isinstance(right, Box) else right
    return Box.of(left.kind, (*one.values, *other.values), complete=one.complete and other.complete)
