"""What statements do."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from epochzero.check.program import failing, library
from epochzero.check.program.binding import own_names
from epochzero.check.program.constructing import misplaced_field
from epochzero.check.program.core import Arguments, Core, Flow, Frame, PathEnds
from epochzero.check.program.counted import Counted, counted, leaves
from epochzero.check.program.expressions import MOST_UNROLLED
from epochzero.check.program.heap import (
    Bound,
    Box,
    Class,
    Content,
    Function,
    Made,
    Member,
    Object,
    Opened,
    Ref,
    Scope,
    V,
    held,
    maker,
    published,
)
from epochzero.check.program.methods import store_item
from epochzero.check.program.ranks import is_first_rank
from epochzero.check.program.tensors.results import modules_of
from epochzero.check.program.tensors.values import Tensor
from epochzero.check.program.values import Anything, Constant, External, Items, Text

__all__ = ["Statements"]

_CHANGED = Anything("changed in a loop")
_ROUND = Anything("an item of what is not known")
_SIGNALS = (LookupError, StopIteration, StopAsyncIteration)
"""Exceptions that also end a loop of whoever called."""
_NO_PACKAGE = "attempted relative import with no known parent package"
_BEYOND = "attempted relative import beyond top-level package"
_TRANSPARENT = frozenset(
    [
        "staticmethod",
        "classmethod",
        "property",
        "cached_property",
        "abstractmethod",
        "abstractproperty",
        "contextmanager",
        "asynccontextmanager",
        "lru_cache",
        "cache",
        "wraps",
        "override",
        "final",
        "no_grad",
        "inference_mode",
        "enable_grad",
        "autocast",
        "record",
        "compile",
        "setter",
        "deleter",
    ]
)
"""Decorators that leave what a function takes and gives as it is written."""
_BARS = frozenset(
    ["tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.std.tqdm", "tqdm.notebook.tqdm", "rich.progress.track"]
)
_MOST_ROUNDS = 64
"""Rounds of loops in loops that are walked one by one."""


class Statements(Core):
    """Executes statements."""

    _walked_rounds = 1

    def execute(self, body: Sequence[ast.stmt]) -> int:
        """Walks statements; after one that may leave the function nothing is certain."""
        before, ended = self.certain, 0
        try:
            for statement in body:
                self.step()
                flow = self._execute_one(statement)
                ended |= flow & ~Flow.NEXT
                if not flow & Flow.NEXT:
                    return ended
                if flow & (Flow.RETURN | Flow.BREAK | Flow.CONTINUE):
                    self.certain = False
        finally:
            self.certain = before
        return ended | Flow.NEXT

    def _execute_one(self, statement: ast.stmt) -> int:
        found = _EXECUTORS.get(type(statement))
        if found is None:
            return Flow.NEXT
        try:
            return found(self, statement)
        except PathEnds:
            return Flow.RAISE
        except RecursionError:
            self.unknown("a statement", "it is nested too deep", statement)
            self.is_lost = True
            return Flow.NEXT

    # -- Simple statements --------------------------------------------------------------------

    def _expression(self, node: ast.Expr) -> int:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)
        return Flow.NEXT

    def _assign(self, node: ast.Assign) -> int:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)
        return Flow.NEXT

    def _annotated(self, node: ast.AnnAssign) -> int:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))
        return Flow.NEXT

    def _augmented(self, node: ast.AugAssign) -> int:
        load: ast.expr = node.target
        before = self.evaluate(load)
        value = self.evaluate(node.value)
        if isinstance(before, Box) and isinstance(node.op, ast.Add) and before.kind == "list":
            # The same list grows, also under its other names.
            other = value.content if isinstance(value, Box) else Content((), (), False)
            complete = before.content.complete and other.complete
            joined = Content((*before.content.values, *other.values), (), complete)
            self.journal.set(before.state, "content", joined)
            return Flow.NEXT
        self.assign(node.target, self.operate(node.op, before, value, node))
        return Flow.NEXT

    def assign(self, target: ast.expr, value: V) -> None:
        """Gives a target of an assignment its value."""
        match target:
            case ast.Name():
                self._store_name(target.id, value)
            case ast.Attribute():
                self._store_attribute(self.evaluate(target.value), target.attr, value, target)
            case ast.Subscript():
                self._store_item(self.evaluate(target.value), target, value)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, target)
            case ast.Starred():
                self.assign(target.value, value)

    def _store_name(self, name: str, value: V) -> None:
        scope = self.frame.scope
        self.journal.set(scope.elsewhere.get(name, scope).names, name, value)

    def _store_attribute(self, owner: V, name: str, value: V, node: ast.AST) -> None:
        match owner:
            case Object() if isinstance(
                setter := self.in_class(owner.cls.line(), f"{name}.setter"), Function
            ):
                where = node if isinstance(node, ast.expr) else ast.Constant(None)
                self.apply(Bound(owner, setter), Arguments([value]), where)
            case Object() | Made():
                self.journal.set(owner.attributes, name, value)
            case Constant(value=None):
                said = f"'NoneType' object has no attribute '{name}'"
                self.fails("none", AttributeError, said, node)
            case Class() | Opened():
                self.journal.set(owner.names, name, value)
        if isinstance(owner, (External, Made)):
            self.looked(owner, name, node, item=False, found=None, stored=value)

    def _store_item(self, owner: V, target: ast.Subscript, value: V) -> None:
        key = self.evaluate(target.slice)
        if isinstance(owner, Constant) or (isinstance(owner, Box) and owner.kind == "tuple"):
            kind = "none" if failing.is_none(owner) else "type"
            said = f"'{failing.type_name(owner)}' object does not support item assignment"
            self.fails(kind, TypeError, said, target)
        elif isinstance(box := modules_of(owner) or owner, Box):
            store_item(self.journal, box, key, value)
        if isinstance(key, Constant) and isinstance(key.value, str):
            if owner == External("os.environ"):
                self.journal.set(self.environment, key.value, value)
            if isinstance(owner, (External, Made, Box)):
                self.looked(owner, key.value, target, item=True, found=None, stored=value)

    def _unpack(self, targets: Sequence[ast.expr], value: V, node: ast.AST) -> None:
        if isinstance(value, (Made, Member, Anything)):
            for at, target in enumerate(targets):
                one: V = Anything("unpacked from what is not known")
                if maker(value) and not isinstance(target, ast.Starred):
                    one = Member(value, f"[{at}]")
                self.assign(target, one)
            return
        if isinstance(value, Constant) and not isinstance(value.value, (str, bytes)):
            kind = "none" if failing.is_none(value) else "type"
            said = f"cannot unpack non-iterable {failing.type_name(value)} object"
            value = self.fails(kind, TypeError, said, node)
        items, complete, _ = self.iterated(value, node)
        if complete and (not self.rounds or getattr(value, "kind", "") == "tuple"):
            self._count(targets, len(items), node)
        stars = [at for at, target in enumerate(targets) if isinstance(target, ast.Starred)]
        if stars and complete:
            behind = len(targets) - stars[0] - 1
            end = len(items) - behind
            items = [*items[: stars[0]], Box.of("list", items[stars[0] : end]), *items[end:]]
        for at, target in enumerate(targets):
            known = at < len(items) and (complete or not stars or at < stars[0])
            self.assign(target, items[at] if known else Anything("unpacked from what is not known"))

    def _count(self, targets: Sequence[ast.expr], given: int, node: ast.AST) -> None:
        """Whether there are as many values as targets."""
        has_star = any(isinstance(one, ast.Starred) for one in targets)
        wanted = len(targets) - has_star
        if given < wanted:
            least = "at least " if has_star else ""
            said = f"not enough values to unpack (expected {least}{wanted}, got {given})"
            self.fails("unpack", ValueError, said, node)
        elif given > wanted and not has_star:
            said = f"too many values to unpack (expected {wanted})"
            self.fails("unpack", ValueError, said, node)

    def _delete(self, node: ast.Delete) -> int:
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope = self.frame.scope
                self.journal.remove(scope.elsewhere.get(target.id, scope).names, target.id)
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value)
                if isinstance(owner, Box):
                    self.journal.set(owner.state, "content", Content((), (), False))
        return Flow.NEXT

    def _return(self, node: ast.Return) -> int:
        value: V = Constant(None) if node.value is None else self.evaluate(node.value)
        self.frame.returns.append(value)
        return Flow.RETURN

    def _raise(self, node: ast.Raise) -> int:
        if node.exc is not None:
            self._raised(self.evaluate(node.exc), node)
        return Flow.RAISE

    def _raised(self, value: V, node: ast.Raise) -> None:
        """An exception that the program raises where it surely comes."""
        name = value.name.removesuffix("()") if isinstance(value, (External, Made)) else ""
        error = getattr(builtins, name.removeprefix("builtins."), None)
        if not self.certain or not isinstance(error, type) or not issubclass(error, Exception):
            return
        if not issubclass(error, _SIGNALS):
            told = value.arguments[0] if isinstance(value, Made) and value.arguments else None
            said = told.value if isinstance(told, Constant) else ""
            self.fails("raised", error, str(said or ""), node)

    def _assert(self, node: ast.Assert) -> int:
        known = self.truth(self.evaluate(node.test))
        if known is False:
            self.called("builtins.AssertionError", Arguments(), None, Constant(None), node.test)
        return Flow.RAISE if known is False else Flow.NEXT

    def _global(self, node: ast.Global) -> int:
        scope = self.frame.scope
        top = scope
        while top.parent is not None:
            top = top.parent
        scope.elsewhere = {**scope.elsewhere, **dict.fromkeys(node.names, top)}
        return Flow.NEXT

    def _nonlocal(self, node: ast.Nonlocal) -> int:
        for name in node.names:
            scope = self.frame.scope
            outer = scope.parent
            while outer is not None and name not in outer.names:
                outer = outer.parent
            if outer is not None:
                scope.elsewhere = {**scope.elsewhere, name: outer}
        return Flow.NEXT

    # -- Imports ------------------------------------------------------------------------------

    def _import(self, node: ast.Import) -> int:
        for alias in node.names:
            opened = self.open(alias.name, node)
            if opened is None:
                self.imported(alias.name, (), node)
            name = alias.asname or alias.name.partition(".")[0]
            top = alias.name if alias.asname else name
            self._store_name(name, self.opened.get(top) or External(top))
        return Flow.NEXT

    def _import_from(self, node: ast.ImportFrom) -> int:
        name = self._absolute(node)
        if node.level and name == (node.module or ""):
            outside = "." not in self.module.name and not self.job.module
            self.fails("import", ImportError, _NO_PACKAGE if outside else _BEYOND, node)
        opened = self.open(name, node) if name else None
        if opened is None:
            if name:
                self.imported(name, tuple(alias.name for alias in node.names), node)
            for alias in node.names:
                if alias.name != "*":
                    value = self.external_attribute(External(name), alias.name)
                    self._store_name(alias.asname or alias.name, value)
            return Flow.NEXT
        for alias in node.names:
            if alias.name == "*":
                self._import_all(opened)
                continue
            self._store_name(alias.asname or alias.name, self._member(opened, alias.name, node))
        return Flow.NEXT

    def _absolute(self, node: ast.ImportFrom) -> str:
        """The module that is imported from; a relative one resolved."""
        if not node.level:
            return node.module or ""
        package = self.module.name
        if package == "__main__":
            package = self.job.module
            package = f"{package}.__main__" if package and self._is_package(package) else package
        if self.module.file.name == "__init__.py":
            package = f"{package}.__init__"
        above = package.split(".")[: -node.level]
        return ".".join([*above, *([node.module] if node.module else [])])

    def _is_package(self, name: str) -> bool:
        found = self.modules.find(name)
        return found is not None and (found.is_dir() or found.name == "__init__.py")

    def _import_all(self, opened: Opened) -> None:
        told = opened.names.get("__all__")
        if isinstance(told, Box):
            names = [str(one.value) for one in told.content.values if isinstance(one, Constant)]
        else:
            names = [name for name in opened.names if not name.startswith("_")]
        for name in names:
            if name in opened.names:
                self._store_name(name, opened.names[name])

    def _member(self, opened: Opened, name: str, node: ast.AST) -> V:
        if name in opened.names:
            return opened.names[name]
        if (inner := self.open(f"{opened.name}.{name}", node)) is not None:
            return inner
        module = opened.module
        tree = None if module is None else module.tree
        bound = None if module is None or tree is None else own_names(module, tree)
        if opened.name in self.importing and name in (bound or ()):
            said = (
                f"cannot import name '{name}' from partially initialized module '{opened.name}' "
                "(most likely due to a circular import)"
            )
            return self.fails("import", ImportError, said, node)
        if opened.is_closed:
            return Anything(f"{opened.name} has no {name} that is known")
        return self.attribute(opened, name, node)

    def open(self, name: str, node: ast.AST) -> Opened | None:
        """A module of the job, executed if it was not; None for one that is not the job's."""
        found: Opened | None = None
        for end in [at for at, sign in enumerate(f"{name}.") if sign == "."]:
            part = name[:end]
            if part not in self.opened and self.modules.find(part) is None:
                return None
            found = self.opened.get(part) or self._execute_module(part, node)
            if found is None:
                return None
        return found

    def _execute_module(self, name: str, node: ast.AST) -> Opened | None:
        module = self.modules.load(name)
        if module is None and not self._is_package(name):
            return None
        opened = Opened(name, {}, module)
        self.opened[name] = opened
        if module is not None:
            via = (*self.frame.via, self.place(node))
            self.run_module(opened, via)
        parent, _, last = name.rpartition(".")
        if parent in self.opened:
            self.opened[parent].names[last] = opened
        return opened

    def run_module(self, opened: Opened, via: Sequence[object]) -> None:
        """Executes the body of a module, once."""
        module = opened.module
        assert module is not None
        names = opened.names
        names["__name__"] = Constant(module.name)
        names["__file__"] = Constant(module.file.as_posix())
        names["__doc__"] = Anything("a docstring")
        if module.tree is None:
            return
        outer = getattr(self, "frame", None)
        before, self.loops = self.loops, 0
        own = own_names(module, module.tree)
        opened.is_closed = own is not None and "__getattr__" not in own
        self.frame = Frame(Scope(names, module, own=own or frozenset()), "", tuple(via))  # type: ignore[arg-type]
        self.importing.append(opened.name)
        if outer is not None:
            self.frame.phase = outer.phase
        try:
            self.execute(module.tree.body)
        finally:
            self.importing.pop()
            self.loops = before
            if outer is not None:
                self.frame = outer

    # -- Definitions --------------------------------------------------------------------------

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        function: Function = self.function(node, node.name)
        values = [self.evaluate(one) for one in node.decorator_list]
        function.decorators = values
        for decorator, value in zip(reversed(node.decorator_list), reversed(values), strict=True):
            self._decorate(function, decorator, value)
        last = node.decorator_list[0] if node.decorator_list else None
        is_setter = isinstance(last, ast.Attribute) and last.attr in ("setter", "deleter")
        self._store_name(f"{node.name}.{last.attr}" if is_setter else node.name, function)  # type: ignore[union-attr]
        return Flow.NEXT

    def _decorate(self, function: Function, decorator: ast.expr, value: V) -> None:
        """A decorator is called, but what it gives is taken for the function itself."""
        self._add_command(function, decorator)
        last = maker(value).removesuffix("()").rpartition(".")[2]
        if isinstance(value, External):
            if last in ("staticmethod", "classmethod"):
                function.kind = last
            elif last in ("property", "cached_property"):
                function.kind = "property"
        if isinstance(value, (Function, Bound)):
            result = self.apply(value, Arguments([function]), decorator)
            function.is_changed = function.is_changed or result is not function
        elif last not in _TRANSPARENT:
            function.is_changed = True
        owner = value.owner if isinstance(value, Member) else getattr(value, "receiver", None)
        if isinstance(owner, Made):
            self.registered.setdefault(owner, []).append(function)

    def _add_command(self, function: Function, decorator: ast.expr) -> None:
        """``@group.command()``: the function is a command of a group of click."""
        call = decorator if isinstance(decorator, ast.Call) else None
        written = call.func if call is not None else decorator
        if not isinstance(written, ast.Attribute) or written.attr not in ("command", "group"):
            return
        group = self.evaluate(written.value)
        if isinstance(group, Function):
            name = function.node.name.replace("_", "-") if not isinstance(
                function.node, ast.Lambda) else ""  # fmt: skip
            if call is not None and call.args and isinstance(call.args[0], ast.Constant):
                name = str(call.args[0].value)
            group.commands[name] = function

    def _define_class(self, node: ast.ClassDef) -> int:
        bases = tuple(self.evaluate(base) for base in node.bases)
        opaque = any(
            ast.unparse(one.value).rpartition(".")[2] != "ABCMeta" for one in node.keywords
        )
        data = False
        own: list[V] = []
        for decorator in node.decorator_list:
            value = self.evaluate(decorator)
            if isinstance(value, (Function, Bound)):
                own.append(value)
                continue
            name = maker(value).removesuffix("()").rpartition(".")[2]
            data = data or name in ("dataclass", "define", "attrs", "frozen", "s")
            opaque = opaque or name != "dataclass"
        scope = Scope({}, self.module, self.frame.scope, is_class=True)
        inside = f"{self.frame.name}." if self.frame.name else ""
        cls = Class(
            f"{self.module.name}.{inside}{node.name}", node, self.module, bases, scope.names
        )
        cls.opaque = opaque
        inherited = any(one.is_data for one in cls.line())
        cls.is_data = data or inherited or any(n.endswith("NamedTuple") for n in cls.externals())
        outer = self.frame
        name = f"{outer.name}.{node.name}" if outer.name else node.name
        self.frame = Frame(scope, name, outer.via, outer.phase, outer.firm)
        try:
            self.execute(node.body)
        finally:
            self.frame = outer
        for value in scope.names.values():
            if isinstance(value, Function) and value.owner is None:
                value.owner = cls
        for decorator, value in zip(reversed(node.decorator_list), reversed(own), strict=False):
            given = self.apply(value, Arguments([cls]), decorator)
            cls.opaque = cls.opaque or given is not cls
        if field := misplaced_field(cls):
            said = f"non-default argument '{field}' follows default argument"
            self.fails("arguments", TypeError, said, (*node.decorator_list, node)[0])
        self._store_name(node.name, cls)
        return Flow.NEXT

    # -- Conditions ---------------------------------------------------------------------------

    def _if(self, node: ast.If) -> int:
        value = self.evaluate(node.test)
        known = self.truth(value)
        if known is not None:
            return self.execute(node.body if known else node.orelse)
        ways = [lambda: self.execute(node.body), lambda: self.execute(node.orelse)]
        if isinstance(value, Counted):
            return self._by_rounds(value, *ways)
        # One of the processes is the first: whatever fails there fails in every run.
        return self.either(*ways, certain=[0] if is_first_rank(node.test) else [])

    def _by_rounds(self, value: Counted, *ways: Callable[[], int]) -> int:
        """The two ways of a condition over the number of a round: each is certain if its round comes."""

        def later(way: Callable[[], int]) -> Callable[[], int]:
            def walk() -> int:
                self.is_later = True
                return way()

            return walk

        is_first = [value.first is holds for holds in (True, False)]
        comes = [
            value.comes(holds) and (first or not leaves(value.loop))
            for holds, first in zip((True, False), is_first, strict=True)
        ]
        walks = [way if first else later(way) for way, first in zip(ways, is_first, strict=True)]
        return self.either(*walks, certain=[at for at, sure in enumerate(comes) if sure])

    def _match(self, node: ast.Match) -> int:
        subject = self.evaluate(node.subject)
        ways: list[Callable[[], int]] = []
        for case in node.cases:
            known = self._fits(case, subject)
            if known is False:
                continue
            if known and not ways:
                return self.execute(case.body)
            self._capture(case.pattern)
            ways.append(lambda body=case.body: self.execute(body))  # type: ignore[misc]
            if known:
                break
        else:
            ways.append(lambda: Flow.NEXT)
        return self.either(*ways)

    def _fits(self, case: ast.match_case, subject: V) -> bool | None:
        if case.guard is not None:
            return None
        patterns = [case.pattern]
        if isinstance(case.pattern, ast.MatchOr):
            patterns = case.pattern.patterns
        known = [self._fits_one(pattern, subject) for pattern in patterns]
        return True if True in known else None if None in known else False

    def _fits_one(self, pattern: ast.pattern, subject: V) -> bool | None:
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            if pattern.name is not None:
                self._store_name(pattern.name, subject)
            return True
        if isinstance(pattern, ast.MatchValue):
            wanted = self.evaluate(pattern.value)
            return self.compared(ast.Eq(), subject, wanted)
        return None

    def _capture(self, pattern: ast.pattern) -> None:
        for one in ast.walk(pattern):
            if isinstance(one, (ast.MatchAs, ast.MatchStar)) and one.name is not None:
                self._store_name(one.name, Anything("a part of what is matched"))

    # -- Loops --------------------------------------------------------------------------------

    def _for(self, node: ast.For | ast.AsyncFor) -> int:
        over = _walked(self.evaluate(node.iter))
        with self.loop():
            items, complete, some = self.iterated(over, node.iter)
            if complete and len(items) * self._walked_rounds <= self._most(node):
                return self._unrolled(node, items)
            first = items[0] if items else _ROUND
            numbers = over.numbers if isinstance(over, Box) else None
            if numbers is not None or _is_range(node.iter):
                first = counted(node, numbers)
            # A number or text is only the first of many; what is done with an object is alike.
            item = first if isinstance(first, Ref | Counted) else _ROUND
            return self._abstract(node, some, lambda: self.assign(node.target, item))

    def _most(self, node: ast.For | ast.AsyncFor) -> int:
        """How many rounds are worth walking: those over numbers are alike."""
        return (
            2
            if _is_range(node.iter)
            else MOST_UNROLLED
            if self._walked_rounds == 1
            else _MOST_ROUNDS
        )

    def _unrolled(self, node: ast.For | ast.AsyncFor, items: Sequence[V]) -> int:
        before, sure = self._walked_rounds, self.certain
        self._walked_rounds = before * max(1, len(items))
        ended = 0
        try:
            for item in items:
                self.assign(node.target, item)
                flow = self.execute(node.body)
                ended |= flow
                if not flow & (Flow.NEXT | Flow.CONTINUE):
                    return self._after(node, ended, broke=True)
                if flow & (Flow.BREAK | Flow.RETURN):
                    self.certain = False
        finally:
            self._walked_rounds, self.certain = before, sure
        return self._after(node, ended | Flow.NEXT, broke=False)

    def _while(self, node: ast.While) -> int:
        with self.loop():
            self._widen(node)
            known = self.truth(self.evaluate(node.test))
            if known is False:
                return self.execute(node.orelse)
            endless = known is True and isinstance(node.test, ast.Constant)
            flow = self._abstract(node, known is True, lambda: None)
            if endless and not flow & Flow.BREAK:
                flow &= ~Flow.NEXT
            return flow & ~Flow.BREAK

    def _abstract(
        self, node: ast.For | ast.AsyncFor | ast.While, some: bool, begin: Callable[[], None]
    ) -> int:
        """One round that stands for all."""
        self._widen(node)
        mark = self.journal.mark()
        broke = 0

        def walk() -> int:
            nonlocal broke
            begin()
            self.rounds += 1
            try:
                flow = self.execute(node.body)
            finally:
                self.rounds -= 1
            broke = flow & Flow.BREAK
            self._blur(mark)
            goes_on = flow & (Flow.NEXT | Flow.BREAK | Flow.CONTINUE)
            return (flow & ~(Flow.BREAK | Flow.CONTINUE)) | (Flow.NEXT if goes_on else 0)

        flow = walk() if some else self.either(walk, lambda: Flow.NEXT)
        if isinstance(node, ast.While):
            return flow | broke | (Flow.NEXT if not flow else 0)
        return self._after(node, flow | broke, broke=False)

    def _widen(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """What the loop changes is not known when a round begins that stands for all."""
        scope = self.frame.scope
        for target in _targets(node.body):
            where, key = scope.elsewhere.get(getattr(target, "id", ""), scope).names, ""
            if isinstance(target, ast.Name):
                key = target.id
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                owner = scope.names.get(target.value.id)
                if isinstance(owner, (Object, Made)):
                    where, key = owner.attributes, target.attr
            before = where.get(key)
            if isinstance(before, (Constant, Text, Items)):
                self.journal.set(where, key, _CHANGED)
            elif isinstance(held(before), Tensor):
                self.journal.set(where, key, _of_any_size(before))

    def _blur(self, mark: int) -> None:
        """Containers that a round has changed hold more than this one round has put there."""
        for where, key in set_of(self.journal.changed(mark)):
            now = where.get(key)
            if isinstance(now, Content):
                self.journal.set(where, key, Content(now.values, now.keys, False))
            elif isinstance(now, Made | Tensor) and isinstance(held(now), Tensor):
                # A later round may have made it from what this one has left.
                self.journal.set(where, key, _of_any_size(now))

    def _after(self, node: ast.For | ast.AsyncFor, flow: int, broke: bool) -> int:
        """What follows a loop: its ``else`` when it was not broken off."""
        ended = flow & (Flow.RETURN | Flow.RAISE)
        if broke:
            return ended | (Flow.NEXT if flow & Flow.BREAK else 0)
        if not flow & Flow.NEXT:
            return ended
        if flow & Flow.BREAK and node.orelse:
            return ended | self.either(lambda: self.execute(node.orelse), lambda: Flow.NEXT)
        return ended | self.execute(node.orelse)

    def iterated(self, value: V, node: ast.AST) -> tuple[list[V], bool, bool]:
        """The items that a loop over a value sees, whether these are all, and whether there are some."""
        items, complete, some = self.iterated_known(modules_of(value) or value)
        if items is not None:
            return items, complete, some
        where = node if isinstance(node, ast.expr) else ast.Constant(None)
        if isinstance(value, Constant) and not isinstance(value.value, (str, bytes)):
            kind = "none" if failing.is_none(value) else "type"
            self.fails(
                kind, TypeError, f"'{failing.type_name(value)}' object is not iterable", node
            )
        library.consume(self, value, where, certain=True)
        if isinstance(value, Object):
            return self._iterated_object(value)
        if isinstance(value, (Made, Member)) and (name := maker(value)):
            item = Member(value, "[]")
            self.called(f"{name}.__iter__", Arguments([]), value, item, where)
            return [item], False, False
        return [_ROUND], False, False

    def _iterated_object(self, value: Object) -> tuple[list[V], bool, bool]:
        for name in ("__iter__", "__getitem__"):
            given = Arguments([Anything("an index")] if name == "__getitem__" else [])
            result = self.own_method(value, name, given)
            if isinstance(result, Box):
                return list(result.content.values) or [_ROUND], False, False
            if result is not None:
                break
        return [_ROUND], False, False

    # -- Exceptions and contexts --------------------------------------------------------------

    def _try(self, node: ast.Try) -> int:
        names = frozenset(name for one in node.handlers for name in self._caught(one))
        turned = frozenset(name for one in node.handlers for name in self._turned(one))
        mark = self.journal.mark()
        with self.under(handled=names, turned=turned):
            flow = self.execute(node.body)
        if flow & Flow.NEXT:
            flow = (flow & ~Flow.NEXT) | self.execute(node.orelse)
        if node.handlers:
            flow = self._handlers(node, flow, mark)
        final = self.execute(node.finalbody)
        return flow | (final & ~Flow.NEXT) if final & Flow.NEXT else final

    def _handlers(self, node: ast.Try, flow: int, mark: int) -> int:
        """The handlers as other ways than the one where nothing is raised."""
        body = self.journal.rewind(mark)

        def unharmed() -> int:
            self.journal.merge([body])
            return flow

        def way(handler: ast.ExceptHandler) -> Callable[[], int]:
            def walk() -> int:
                # It may be raised before or after any change.
                self.journal.join_in(body)
                if handler.name:
                    self._store_name(handler.name, Anything("an exception"))
                flow = self.execute(handler.body)
                if handler.name:
                    self.journal.remove(self.frame.scope.names, handler.name)
                return flow

            return walk

        return self.either(unharmed, *(way(one) for one in node.handlers))

    def _caught(self, handler: ast.ExceptHandler) -> Iterator[str]:
        """Names of the exceptions that a handler catches for good."""
        if not _gives_up(handler):
            yield from self._named(handler)

    def _turned(self, handler: ast.ExceptHandler) -> Iterator[str]:
        """Names of the exceptions for which a handler raises another one."""
        last = handler.body[-1]
        if isinstance(last, ast.Raise) and isinstance(last.exc, ast.Call):
            yield from self._named(handler)

    def _named(self, handler: ast.ExceptHandler) -> Iterator[str]:
        if handler.type is None:
            yield "BaseException"
            return
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for one in types:
            value = published(self.evaluate(one))
            if isinstance(value, External):
                yield value.name.removeprefix("builtins.")
            elif not isinstance(value, Anything):
                yield getattr(value, "name", "")

    def _with(self, node: ast.With | ast.AsyncWith) -> int:
        handled: set[str] = set()
        for one in node.items:
            value = self.evaluate(one.context_expr)
            if isinstance(value, Made) and value.name == "contextlib.suppress":
                names = [arg.name for arg in value.arguments if isinstance(arg, External)]
                handled |= {name.removeprefix("builtins.") for name in names}
            entered = value
            if isinstance(value, Object):
                entered = self.own_method(value, "__enter__", Arguments()) or value
            elif isinstance(value, Box):
                entered = value.content.values[0] if value.content.values else Anything("entered")
            if one.optional_vars is not None:
                self.assign(one.optional_vars, entered)
        with self.under(handled=frozenset(handled)):
            return self.execute(node.body)


_EXECUTORS: dict[type[ast.stmt], Callable[..., int]] = {
    ast.Expr: Statements._expression,
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented,
    ast.Delete: Statements._delete,
    ast.Return: Statements._return,
    ast.Raise: Statements._raise,
    ast.Assert: Statements._assert,
    ast.Global: Statements._global,
    ast.Nonlocal: Statements._nonlocal,
    ast.Import: Statements._import,
    ast.ImportFrom: Statements._import_from,
    ast.FunctionDef: Statements._define,
    ast.AsyncFunctionDef: Statements._define,
    ast.ClassDef: Statements._define_class,
    ast.If: Statements._if,
    ast.Match: Statements._match,
    ast.For: Statements._for,
    ast.AsyncFor: Statements._for,
    ast.While: Statements._while,
    ast.Try: Statements._try,
    ast.TryStar: Statements._try,
    ast.With: Statements._with,
    ast.AsyncWith: Statements._with,
    ast.Break: lambda machine, node: Flow.BREAK,
    ast.Continue: lambda machine, node: Flow.CONTINUE,
}


def _walked(value: V) -> V:
    """What a loop goes over, without the bar that shows how far it is."""
    if isinstance(value, Made) and value.name in _BARS and value.arguments:
        return value.arguments[0]
    return value


def _of_any_size(value: V | None) -> V:
    """A tensor of which a loop may have changed the shape."""
    return replace(value, holds=None) if isinstance(value, Made) else _CHANGED


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"


def _gives_up(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises again or exits."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise):
        return True
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("exit", "_exit", "quit", "abort")


def _targets(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """What the statements of a loop assign, those of inner functions left out."""
    todo: list[ast.AST] = list(body)
    while todo:
        one = todo.pop()
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store):
            yield one
        todo += ast.iter_child_nodes(one)


def set_of(changed: list[tuple[dict[str, object], str]]) -> list[tuple[dict[str, object], str]]:
    """Changed entries, each once."""
    return list({(id(where), key): (where, key) for where, key in changed}.values())
