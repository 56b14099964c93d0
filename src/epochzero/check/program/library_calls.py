"""Calls of libraries, and of the job's functions that are passed to them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from epochzero.check.program import (
    executed_files,
    files,
    library,
    methods,
    python_errors,
    stdlib_results,
)
from epochzero.check.program.callbacks import counts
from epochzero.check.program.escapes import escape, leaves_arguments, shared
from epochzero.check.program.frames import Arguments, PathEnds
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Function,
    LibraryResult,
    Object,
    Super,
    V,
    held,
)
from epochzero.check.program.job_calls import JobCalls
from epochzero.check.program.parsing import CommandLines
from epochzero.check.program.tensors import results
from epochzero.check.program.texts import PATHS, as_text
from epochzero.check.program.values import Anything, Constant, External, Items

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
_OPENED = ("builtins.open", "csv.DictReader")
"""Objects that are iterated by line or row; each item has the place of its source."""


class LibraryCalls(JobCalls):
    """Call functions and methods that the job's code does not define."""

    def __init__(self, *args: object, **keywords: object) -> None:
        super().__init__(*args, **keywords)
        self.command_lines = CommandLines(self)

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
        self._may_fill(name, given, node)
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
            self.may_have_grown()
            return None
        name = str(text.value)
        if name.startswith("."):
            self.may_have_grown()
            return None
        opened = self.open(name, node)
        if opened is None:
            self.imported(name, (), node)
        return opened or External(name)

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
        self._may_fill(dotted, given, node, owner)
        return result

    def _may_fill(self, name: str, given: Arguments, node: ast.expr, *owner: V) -> None:
        """Account for a library that may add to what is passed to it, or fill what is empty."""
        values = [*shared(given, node), *owner]
        if leaves_arguments(name, values):
            is_builtin = name.startswith("builtins.")
            values = [
                v for v in values if isinstance(v, Box) and not (v.content.values or is_builtin)
            ]
        escape(self.journal, values)

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


def _is_partial(made: LibraryResult) -> bool:
    return made.name == "functools.partial" and bool(made.arguments)
