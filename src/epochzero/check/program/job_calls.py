"""Calls of the job's own functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from epochzero.check.program import library, phases, python_errors
from epochzero.check.program.binding import own_names
from epochzero.check.program.construction import fields_of, is_made_otherwise, refusal
from epochzero.check.program.escapes import escape
from epochzero.check.program.frames import Arguments, CallFrame, Flow, PathEnds
from epochzero.check.program.heap import (
    Box,
    Class,
    Function,
    JobModule,
    LibraryResult,
    Names,
    Object,
    Scope,
    V,
    join,
    published,
)
from epochzero.check.program.tensors.machine import Tensors
from epochzero.check.program.values import Anything, Constant, External, Text
from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import misfit, of_definition

DEEPEST = 24
"""Limit of the call depth."""
MOST_OF_ONE = 200
"""Limit of the calls of one function."""


class JobCalls(Tensors):
    """Call the job's functions, and create objects of its classes."""

    def __init__(self, *args: object, **keywords: object) -> None:
        super().__init__(*args, **keywords)  # type: ignore[arg-type]
        self._active: list[Function] = []
        self._counts: dict[ast.AST, int] = {}
        self._results: dict[object, V] = {}

    def run(
        self, function: Function, given: Arguments, node: ast.expr, receiver: V | None = None
    ) -> V:
        """Return the result of a function of the job, and record the events in it.

        Raises:
            PathEnds: it never returns.
        """
        count = self._counts[function.node] = self._counts.get(function.node, 0) + 1
        if self._active.count(function) > 1:
            # What it does to the job's modules, the outer calls have done.
            escape(self.journal, [function, *given.all])
            return Anything("the result of a recursion")
        if len(self._active) >= DEEPEST or count > MOST_OF_ONE:
            self.unknown(f"{function.name}()", "it is called too often or too deep", node)
            self.may_have_grown(function, *given.all)
            return Anything(f"the result of {function.name}")
        if wrong := self._misfit(function, given):
            name = function.name.removeprefix(f"{function.scope.module.name}.")
            return self.fails("arguments", TypeError, f"{name}() {wrong}", node)
        if function.is_changed and misfit(*_call_of(function, given)):
            given = Arguments([], {}, False)
        key = _key(function, given)
        if key is not None and key in self._results:
            return self._results[key]
        events, mark = len(self.recording), self.journal.mark()
        definition = function.scope.module.path, function.node.lineno
        self.entered[definition] = self.entered.get(definition, False) or self.path.certain
        module, code = function.scope.module, function.node
        own = None if isinstance(code, ast.Lambda) else own_names(module, code)
        scope = Scope({}, module, function.scope, own=own or frozenset())
        with self._inside(function, scope, node, receiver):
            self._bind(function, given, scope.names)
            result = self._body(function)
        quiet = len(self.recording) == events
        if key is not None and quiet and self._touched_only(scope.names, mark):
            self._results[key] = result
        return Anything("what a decorator gives") if function.is_changed else result

    def may_have_grown(self, *values: V) -> None:
        """Account for code of the job that was not followed: it may have added to values and to the job's modules."""
        names = [value for module in self.opened.values() for value in module.names.values()]
        escape(self.journal, [*values, *names])

    @staticmethod
    def _misfit(function: Function, given: Arguments) -> str:
        """Return why the arguments of a call do not fit; empty if a decorator or metaclass may change the parameters."""
        owner = function.owner
        is_made = getattr(function.node, "name", "") == "__init__"
        if function.is_changed or (owner is not None and is_made and is_made_otherwise(owner)):
            return ""
        return misfit(*_call_of(function, given))

    def _touched_only(self, names: Names, mark: int) -> bool:
        return all(where is names for where, _ in self.journal.changed(mark))

    @contextmanager
    def _inside(
        self, function: Function, scope: Scope, node: ast.expr, receiver: V | None
    ) -> Iterator[None]:
        outer = self.frame
        phase, firm = self._phase_in(function)
        via = (*outer.via, self.place(node)) if hasattr(node, "lineno") else outer.via
        name = function.name.removeprefix(f"{scope.module.name}.")
        self.frame = CallFrame(scope, name, via, phase, firm or outer.firm, function, receiver)
        before = self.frame.start = self.path
        self._active.append(function)
        try:
            yield
        finally:
            self._active.pop()
            self.frame = outer
            self.path = before

    def _phase_in(self, function: Function) -> tuple[str, str]:
        """Return the phase of a function's events, and the phase that applies even in a training loop."""
        if function.owner is not None and library.is_dataset(function.owner):
            return "preprocessing", "preprocessing"
        last = function.name.rpartition(".")[2]
        module = function.scope.module.name.rpartition(".")[2]
        owner = function.owner.name.rpartition(".")[2] if function.owner else ""
        named = phases.named_phase(last) or phases.named_phase(owner) or phases.named_phase(module)
        return named or self.frame.phase, ""

    def _bind(self, function: Function, given: Arguments, names: Names) -> None:
        """Bind the parameters to their arguments; a missing argument without a known default is `Anything`."""
        args = function.node.args
        positional = [*args.posonlyargs, *args.args]
        todo = list(given.positional)
        keywords = dict(given.keywords)
        offset = len(positional) - len(function.defaults)
        for at, parameter in enumerate(positional):
            default = function.defaults[at - offset] if at >= offset else None
            if todo:
                value: V = todo.pop(0)
            else:
                value = self._given(parameter.arg, default, keywords, given.complete)
            names[parameter.arg] = value
        for parameter, default in zip(args.kwonlyargs, function.keyword_defaults, strict=True):
            names[parameter.arg] = self._given(parameter.arg, default, keywords, given.complete)
        if args.vararg:
            names[args.vararg.arg] = Box.of("tuple", todo, complete=given.complete)
        if args.kwarg:
            keys = [Constant(key) for key in keywords]
            names[args.kwarg.arg] = Box.of("dict", keywords.values(), keys, given.complete)

    def _given(self, name: str, default: V | None, keywords: dict[str, V], complete: bool) -> V:
        if name in keywords:
            return keywords.pop(name)
        if default is None or not complete:
            return Anything("an argument that is not given")
        return default

    def _body(self, function: Function) -> V:
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body)
        try:
            flow = self.execute(node.body)
        except RecursionError:
            return Anything("nested too deep")
        frame = self.frame
        for changes in frame.left:
            self.journal.join_in(changes)
        if frame.yields:
            return Box.of("list", frame.yields, complete=frame.all_yielded)
        if not flow & (Flow.NEXT | Flow.RETURN):
            raise PathEnds
        results = frame.returns
        if flow & Flow.NEXT:
            results = [*results, Constant(None)]
        result = results[0]
        for other in results[1:]:
            result = join(result, other)
        return result

    def own_method(self, receiver: Object, name: str, given: Arguments) -> V | None:
        """Return the result of a method of the job's class; None if the class lacks the name."""
        for cls in receiver.cls.line():
            found = cls.names.get(name)
            if isinstance(found, Function):
                first: list[V] = [] if found.kind == "staticmethod" else [receiver]
                bound = Arguments([*first, *given.positional], given.keywords, given.complete)
                return self.run(found, bound, self.at, receiver)
        return None

    def possibly(self, function: V, node: ast.expr, given: Arguments | None = None) -> None:
        """Walk a function that a library may call: its events are not certain."""
        unknown = Arguments([], {}, False)

        def way() -> int:
            self.apply(function, given or unknown, node)
            return Flow.NEXT

        self.either(way, lambda: Flow.NEXT)

    def instance(self, cls: Class, given: Arguments, node: ast.expr) -> V:
        """Create an object of a class of the job."""
        if any(base.startswith(("enum.", "typing.Protocol")) for base in cls.externals()):
            return Anything(f"a member of {cls.name}")
        made = Object(
            cls,
            tuple(published(argument) for argument in given.positional),
            {key: published(keyword) for key, keyword in given.keywords.items()},
            self.place(node),
        )
        if wrong := refusal(cls, len(given.positional), tuple(given.keywords), given.complete):
            name = cls.name.rpartition(".")[2]
            kind = "abstract" if wrong.startswith("without") else "arguments"
            message = f"{name}() {wrong}" if kind == "arguments" else (
                f"Can't instantiate abstract class {name} {wrong}"
            )  # fmt: skip
            self.fails(kind, TypeError, message, node)
            return made
        if cls.is_data and not any("__init__" in parent.names for parent in cls.line()):
            self._fill(made, given)
            self.own_method(made, "__post_init__", Arguments())
        elif self.own_method(made, "__init__", given) is None and cls.externals():
            base = cls.externals()[0]
            if base != "?":
                self.called(f"{base}().__init__", given, made, Constant(None), node)
        return made

    def _fill(self, made: Object, given: Arguments) -> None:
        """Set the fields of a data class from the arguments and defaults."""
        todo = list(given.positional)
        for name, default in fields_of(made.cls).items():
            if todo:
                value = todo.pop(0)
            elif name in given.keywords:
                value = given.keywords[name]
            else:
                value = self._default_of_field(default, given.complete)
            self.journal.set(made.attributes, name, value)

    def _default_of_field(self, default: V | None, complete: bool) -> V:
        if default is None or not complete:
            return Anything("an argument that is not given")
        if isinstance(default, LibraryResult) and default.name.endswith("field"):
            if "default" in default.keywords:
                return default.keywords["default"]
            if (factory := default.keywords.get("default_factory")) is not None:
                return self.apply(factory, Arguments(), self.at)
            return Anything("an argument that is not given")
        return default

    def has(self, owner: V, name: str) -> bool | None:
        """Whether a value has an attribute; None if unknown."""
        if isinstance(owner, Object):
            if name in owner.attributes or any(name in cls.names for cls in owner.cls.line()):
                return True
            unsure = owner.cls.externals() or any(cls.opaque for cls in owner.cls.line())
            return None if unsure else False
        if isinstance(owner, JobModule) and owner.module is not None:
            return True if name in owner.names else None
        if isinstance(owner, LibraryResult):
            return True if name in owner.attributes else None
        return python_errors.has_attribute(owner, name)


def _call_of(
    function: Function, given: Arguments
) -> tuple[CallSignature, int, tuple[str, ...], bool]:
    """Return the parameters of a function, and what is passed to it."""
    message = of_definition(function.node.args)
    return message, len(given.positional), tuple(given.keywords), given.complete


def _key(function: Function, given: Arguments) -> object | None:
    """Return the cache key of a result; None unless all arguments are constants, texts or library names."""
    if not given.complete or function.scope.parent is not None:
        return None
    values = (*given.positional, *given.keywords.values())
    if not all(isinstance(value, (Constant, Text, External)) for value in values):
        return None
    plain = tuple(
        (type(value.value), value.value) if isinstance(value, Constant) else repr(value)
        for value in values
    )
    return function.node, len(given.positional), tuple(given.keywords), plain
