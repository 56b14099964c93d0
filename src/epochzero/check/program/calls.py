"""Calls of the job's own functions and classes, and of libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from epochzero.check.findings import SourceLocation
from epochzero.check.program import (
    executed_files,
    files,
    library,
    methods,
    phases,
    python_errors,
    stdlib_results,
)
from epochzero.check.program.binding import own_names
from epochzero.check.program.callbacks import counts
from epochzero.check.program.construction import fields_of, is_made_otherwise, refusal
from epochzero.check.program.frames import Arguments, CallFrame, Flow, PathEnds
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Content,
    Function,
    JobModule,
    LibraryResult,
    Member,
    Names,
    Object,
    Scope,
    Super,
    V,
    held,
    is_torch_module,
    join,
    published,
)
from epochzero.check.program.parsing import CommandLines
from epochzero.check.program.tensors import results
from epochzero.check.program.tensors.machine import Tensors
from epochzero.check.program.texts import PATHS, as_text
from epochzero.check.program.values import Anything, Constant, External, Items, Text
from epochzero.check.target.model import Signature
from epochzero.check.target.signature import misfit, of_definition

DEEPEST = 24
"""Limit of the call depth."""
MOST_OF_ONE = 200
"""Limit of the calls of one function."""
_LIGHTNING = (
    "lightning.pytorch.cli.LightningCLI",
    "pytorch_lightning.cli.LightningCLI",
    "pytorch_lightning.utilities.cli.LightningCLI",
)
_PARSERS = {
    "jsonargparse.CLI": "jsonargparse",
    "jsonargparse.auto_cli": "jsonargparse",
    "simple_parsing.parse": "simple_parsing",
    "typer.run": "typer",
    "tyro.cli": "tyro",
}
_NOT_FOLLOWED = {
    "builtins.eval": ("what eval gives", "an expression in a text is not followed"),
    **{
        name: (
            "the arguments",
            f"how {parser} takes them from functions and classes is not followed",
        )
        for name, parser in _PARSERS.items()
    },
}
"""Functions that are not followed: the effect that is therefore unknown, and why."""
_ENDS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"})


class Calls(Tensors):
    """Call values."""

    def __init__(self, *args: object, **keywords: object) -> None:
        super().__init__(*args, **keywords)  # type: ignore[arg-type]
        self.command_lines = CommandLines(self)
        self._active: list[Function] = []
        self._counts: dict[ast.AST, int] = {}
        self._results: dict[object, V] = {}

    def apply(self, callee: V, given: Arguments, node: ast.expr) -> V:
        """Call a value.

        Raises:
            PathEnds: the call never returns.
        """
        before, self.at = self.at, node
        try:
            return self._apply(callee, given, node)
        finally:
            self.at = before

    def _apply(self, callee: V, given: Arguments, node: ast.expr) -> V:
        match callee:
            case Function():
                return self._function(callee, given, node)
            case BoundFunction(receiver, Function() as function):
                given = Arguments([receiver, *given.positional], given.keywords, given.complete)
                return self.run(function, given, node, receiver)
            case BoundFunction(receiver, str() as name):
                return self._built_in_method(receiver, name, given, node)
            case Class():
                return self.instance(callee, given, node)
            case Object():
                return self._called_object(callee, given, node)
            case External():
                return self._external(callee.name, given, node)
            case Member(owner, name):
                return self._method(owner, name, given, node)
            case LibraryResult(name="functools.partial") if callee.arguments:
                return self._apply(callee.arguments[0], _with_earlier(callee, given), node)
            case LibraryResult():
                return self._method(callee, "__call__", given, node)
            case Constant() | Text() | Box() | JobModule():
                kind = "none" if python_errors.is_none(callee) else "type"
                message = f"'{python_errors.type_name(callee)}' object is not callable"
                return self.fails(kind, TypeError, message, node)
        self.callbacks(given, node)
        return Anything("what a function gives that is not known")

    # -- The job's own functions --------------------------------------------------------------

    def _function(self, function: Function, given: Arguments, node: ast.expr) -> V:
        """Call a function; a command receives the arguments of the command line."""
        if not function.decorators or not self.command_lines.is_command(function):
            return self.run(function, given, node)
        for entry, parsed in self.command_lines.given_to(function):
            self.run(entry, parsed, node)
        return Constant(None)

    def run(
        self, function: Function, given: Arguments, node: ast.expr, receiver: V | None = None
    ) -> V:
        """Return the result of a function of the job, and record the events in it.

        Raises:
            PathEnds: it never returns.
        """
        count = self._counts[function.node] = self._counts.get(function.node, 0) + 1
        if self._active.count(function) > 1:
            return Anything("the result of a recursion")
        if len(self._active) >= DEEPEST or count > MOST_OF_ONE:
            self.unknown(f"{function.name}()", "it is called too often or too deep", node)
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

    # -- The job's own classes ----------------------------------------------------------------

    def instance(self, cls: Class, given: Arguments, node: ast.expr) -> V:
        """Create an object of a class of the job."""
        if any(base.startswith(("enum.", "typing.Protocol")) for base in cls.externals()):
            return Anything(f"a member of {cls.name}")
        made = Object(
            cls,
            tuple(published(argument) for argument in given.positional),
            {key: published(keyword) for key, keyword in given.keywords.items()},
            self._place_of(node),
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

    def _place_of(self, node: ast.AST) -> SourceLocation:
        return self.place(node)

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

    def _called_object(self, callee: Object, given: Arguments, node: ast.expr) -> V:
        found = self.own_method(callee, "__call__", given)
        if found is not None:
            return found
        if callee.cls.externals():
            # The library's call operator of layers and modules calls this method.
            for name in ("forward", "call"):
                # Keras does not pass `training` to a method that does not accept it.
                taken = Arguments(given.positional, {}, False) if name == "call" else given
                if (found := self.own_method(callee, name, taken)) is not None:
                    return found
            if self._lacks_forward(callee):
                name = python_errors.type_name(callee)
                message = f'Module [{name}] is missing the required "forward" function'
                return self.fails("forward", NotImplementedError, message, node)
            return self._method(callee, "__call__", given, node)
        if not any(cls.opaque for cls in callee.cls.line()):
            message = f"'{python_errors.type_name(callee)}' object is not callable"
            return self.fails("type", TypeError, message, node)
        return Anything(f"what {callee.cls.name} gives")

    def _lacks_forward(self, module: Object) -> bool:
        """Whether nothing defines what a torch module does when it is called."""
        names = {name for cls in module.cls.line() for name in cls.names} | set(module.attributes)
        is_known = is_torch_module(module.cls) and not any(
            parent.opaque for parent in module.cls.line()
        )
        return is_known and names.isdisjoint({"forward", "__call__", "__getattr__"})

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

    # -- Outside of the job -------------------------------------------------------------------

    def _built_in_method(self, receiver: V, name: str, given: Arguments, node: ast.expr) -> V:
        if isinstance(receiver, Items):
            receiver = Box.of(receiver.kind, receiver.values, receiver.keys, receiver.complete)
        result: V = Anything(f"what {name} gives")
        if (
            name == "join"
            and given.positional
            and (message := python_errors.joined(given.positional[0]))
        ):
            return self.fails("type", TypeError, message, node)
        if isinstance(receiver, Box):
            result = methods.of_container(self.journal, receiver, name, given.positional)
        elif (text := as_text(receiver)) is not None:
            result = methods.of_text(text, name, given.positional, given.keywords)
        dotted = self.method_name(receiver, name)
        self.called(dotted, given, receiver, result, node)
        self.callbacks(given, node, counts(dotted, given.positional, given.keywords))
        return result

    def _external(self, name: str, given: Arguments, node: ast.expr) -> V:
        if name in _ENDS:
            self.called(name, given, None, Constant(None), node)
            raise PathEnds
        if name == "builtins.super":
            return self._super(given)
        result = stdlib_results.result_of(self, name, given) or files.loaded(self, name, given)
        if result is None:
            made = LibraryResult(name, tuple(given.positional), given.keywords, self.place(node))
            made.complete = given.complete
            result = self.sized(made, lambda: results.of_function(name, given), node)
        elif isinstance(result, LibraryResult) and result.place is None:
            result.place = self.place(node)
        self._change_path(name, given)
        if name in ("importlib.import_module", "builtins.__import__"):
            result = self._import_named(given, node) or result
        if name == "builtins.exec":
            executed_files.execute(self, given, node)
        if name in _NOT_FOLLOWED:
            self.unknown(*_NOT_FOLLOWED[name], node)
        self.called(name, given, None, result, node)
        self.command_lines.called(name, given, result, node)
        if not name.startswith("builtins."):
            self._may_fill(given)
        if name == "functools.partial":
            return result
        if name == "fire.Fire" and given.positional and isinstance(given.positional[0], Function):
            function = given.positional[0]
            return self.run(function, self.command_lines.fired(function), node)
        if name in _LIGHTNING:
            objects = self.command_lines.of_lightning(given, node)
            trainer = LibraryResult("lightning.pytorch.Trainer", (), {}, self.place(node))
            library.method_called(self, trainer, "fit", Arguments(objects), node)
        library.called(self, name, given, result, node)
        return result

    def _import_named(self, given: Arguments, node: ast.expr) -> V | None:
        """Import the module that ``importlib.import_module`` names; None if the name is unknown."""
        text = as_text(given.positional[0]) if given.positional else None
        if not isinstance(text, Constant):
            self.unknown("an import", "the name of the module is not known", node)
            self._may_have_grown()
            return None
        name = str(text.value)
        if name.startswith("."):
            self._may_have_grown()
            return None
        opened = self.open(name, node)
        if opened is None:
            self.imported(name, (), node)
        return opened or External(name)

    def _may_have_grown(self) -> None:
        """Account for an unknown module of the job that was executed: it may have registered objects.

        The containers of the job's modules, classes and objects keep their known items and may have more.
        """
        todo: list[V] = [value for o in self.opened.values() for value in o.names.values()]
        seen: set[int] = set()
        while todo:
            value = todo.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Box):
                content = value.content
                todo.extend(content.values)
                if content.complete and value.kind != "tuple":
                    self.journal.set(value.state, "content", replace(content, complete=False))
            elif isinstance(value, Class):
                todo.extend(value.names.values())
            elif isinstance(value, Object):
                todo.extend([value.cls, *value.attributes.values()])

    def _change_path(self, name: str, given: Arguments) -> None:
        """Apply ``sys.path.insert`` and ``append``."""
        if name in ("sys.path.insert", "sys.path.append") and given.positional:
            if isinstance(text := as_text(given.positional[-1]), Constant):
                self.modules.add_path(str(text.value), first=name.endswith("insert"))
            else:
                self.unknown(
                    "modules of the job", "an unknown directory is added to sys.path", self.at
                )

    def _super(self, given: Arguments) -> V:
        frame = self.frame
        if len(given.positional) == 2 and isinstance(given.positional[0], Class):
            return Super(given.positional[1], given.positional[0])
        if frame.function is None or frame.function.owner is None or frame.receiver is None:
            return Anything("super")
        return Super(frame.receiver, frame.function.owner)

    def _method(self, owner: V, name: str, given: Arguments, node: ast.expr) -> V:
        """Call a method of a library's object."""
        result: V | None = None
        chained: V | None = None
        if isinstance(owner, LibraryResult) and owner.name in PATHS:
            folder = self.job.folder.as_posix()
            result = methods.of_path(owner, name, given.positional, folder)
        if isinstance(owner, Object) and name in library.FLUENT:
            result = owner
        dotted = self.method_name(owner, name)
        try:
            result = result or self.command_lines.method(owner, name, given, node)
        except PathEnds:
            self.called(dotted, given, owner, Constant(None), node)
            raise
        if result is None:
            result = self._result(dotted, given, node)
            if isinstance(result, LibraryResult):
                result.receiver = owner
            chained = self.of_chain(owner, given, node) if name == "__call__" else None
            if chained is None:
                result = self.sized(result, lambda: results.of_method(owner, name, given), node)
            else:
                result = self.sized(result, lambda: held(chained), node)
        receiver = None if isinstance(owner, External) else owner
        self.called(dotted, given, receiver, result, node)
        if chained is None:
            library.method_called(self, owner, name, given, node)
        self.changed_in_place(owner, name, given, node)
        self._may_fill(given)
        return result

    def _may_fill(self, given: Arguments) -> None:
        """Account for a library that may fill the empty containers passed to it."""
        for keyword in (*given.positional, *given.keywords.values()):
            if isinstance(keyword, Box) and keyword.content == Content():
                self.journal.set(keyword.state, "content", Content((), (), False))

    def _result(self, dotted: str, given: Arguments, node: ast.expr) -> V:
        if dotted.startswith("?"):
            return Anything("what a function gives that is not known")
        return LibraryResult(dotted, tuple(given.positional), given.keywords, self.place(node))

    def flag(self, name: str) -> V | None:
        """Return the value of an absl flag; None if it is not a flag or unknown."""
        return self.command_lines.flag(name)

    def read_flags(self) -> None:
        """Parse the flags, as ``absl.app.run`` does first."""
        self.command_lines.read_flags()

    def callbacks(
        self, given: Arguments, node: ast.expr, each: Mapping[int | str, int] | None = None
    ) -> None:
        """Walk the functions of the job that are passed to a library, which may call them.

        Args:
            given: arguments of the library's function.
            node: the call.
            each: number of arguments of each callback, by position or keyword, if known.
        """
        places: list[int | str] = [*range(len(given.positional)), *given.keywords]
        values = (*given.positional, *given.keywords.values())
        for place, value in zip(places, values, strict=True):
            held = (
                value.arguments[0]
                if isinstance(value, LibraryResult) and _is_partial(value)
                else value
            )
            function = held.function if isinstance(held, BoundFunction) else held
            if isinstance(function, Function):
                count = (each or {}).get(place) if given.complete else None
                taken: list[V] = [Anything("what a library gives")] * (count or 0)
                self.possibly(value, node, None if count is None else Arguments(taken))

    def iterated_known(self, value: V | None) -> tuple[list[V] | None, bool, bool]:
        """Like `iterated`, with None for the items if nothing is known about them."""
        if isinstance(value, (Box, Items)):
            content = value.content if isinstance(value, Box) else value
            keyed = value.kind == "dict"
            items: Sequence[V] = content.keys if keyed else content.values
            return list(items), content.complete, bool(items)
        if isinstance(value, Constant) and isinstance(value.value, str) and len(value.value) < 64:
            return [Constant(text) for text in value.value], True, bool(value.value)
        if isinstance(value, LibraryResult) and value.name in _OPENED:
            return [LibraryResult(f"{value.name}().__next__", (), {}, value.place)], False, False
        return None, False, False


_OPENED = ("builtins.open", "csv.DictReader")
"""Objects that are iterated by line or row; each item has the place of its source."""


def _call_of(function: Function, given: Arguments) -> tuple[Signature, int, tuple[str, ...], bool]:
    """Return the parameters of a function, and what is passed to it."""
    message = of_definition(function.node.args)
    return message, len(given.positional), tuple(given.keywords), given.complete


def _is_partial(made: LibraryResult) -> bool:
    return made.name == "functools.partial" and bool(made.arguments)


def _with_earlier(partial: LibraryResult, given: Arguments) -> Arguments:
    """Return the arguments of a call of a ``functools.partial``, including the bound ones."""
    positional = [*partial.arguments[1:], *given.positional]
    return Arguments(positional, {**partial.keywords, **given.keywords}, given.complete)


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
