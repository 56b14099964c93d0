"""Parsers of command lines that the program builds, and their results for the job's arguments.

The interpreter records the calls that build a parser (``ArgumentParser()``, ``add_argument``, options of click,
fields of data classes) as a `ParserSpec`, and `parse` applies it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from epochzero.check.findings import SourceLocation
from epochzero.check.program.argument_origins import argument, placed
from epochzero.check.program.arguments import parse
from epochzero.check.program.core import Core
from epochzero.check.program.frames import Arguments, PathEnds
from epochzero.check.program.heap import (
    Box,
    Class,
    Function,
    LibraryResult,
    Object,
    Ref,
    V,
    published,
    thawed,
)
from epochzero.check.program.parsers.model import Kind, OptionSpec, ParsedCommand, ParserSpec
from epochzero.check.program.values import Anything, Constant, External, Value, constant_of

MOST_PARSED = 8
"""Limit of the runs of a program's parsers; each may start a child process."""
_PARSER = "argparse.ArgumentParser"
_HF = "HfArgumentParser"
_CLICK_OPTIONS = ("click.option", "click.argument")
_CLICK_COMMANDS = ("click.command", "click.group")
_OF_LIGHTNING = {"model": "model_class", "data": "datamodule_class"}
"""Sections of the command line of ``LightningCLI``, with the parameters that name their classes."""
_ABSL = (
    "absl.flags.DEFINE_",
    "tensorflow.compat.v1.app.flags.DEFINE_",
    "tensorflow.app.flags.DEFINE_",
)


@dataclass(eq=False, slots=True)
class Builder:
    """A parser that is being built."""

    kind: Kind
    place: SourceLocation
    keywords: Mapping[str, Value] = field(default_factory=dict)
    options: list[OptionSpec] = field(default_factory=list)
    exclusive: list[list[int]] = field(default_factory=list)
    exclusive_required: list[bool] = field(default_factory=list)
    subcommands: dict[str, Builder] = field(default_factory=dict)
    subcommand_required: bool = False
    subcommand_dest: str = ""
    defaults: dict[str, Value] = field(default_factory=dict)
    complete: bool = True
    classes: list[Class] = field(default_factory=list)
    parsed: tuple[int, ParsedCommand] | None = None

    def spec(self, known_only: bool = False) -> ParserSpec:
        """The parser in its current state."""
        return ParserSpec(
            self.kind,
            tuple(self.options),
            {name: subcommand.spec() for name, subcommand in self.subcommands.items()},
            self.subcommand_required,
            self.subcommand_dest,
            tuple(tuple(group) for group in self.exclusive),
            tuple(self.exclusive_required),
            dict(self.defaults),
            known_only,
            str(constant_of(self.keywords.get("prefix_chars"), "-")),
            bool(constant_of(self.keywords.get("allow_abbrev"), True)),
            str(constant_of(self.keywords.get("fromfile_prefix_chars"), "") or ""),
            self.place,
            self.complete,
            bool(constant_of(self.keywords.get("add_help"), True)),
        )


@dataclass(eq=False, slots=True)
class ParserPart:
    """The result of a parser's method: an argument group, or the factory of its subcommands."""

    builder: Builder
    group: int | None = None
    makes_commands: bool = False


class CommandLines:
    """The parsers of a program.

    Args:
        machine: the interpreter, whose calls build the parsers.
    """

    def __init__(self, machine: Core) -> None:
        self.machine = machine
        self.parsed: list[ParsedCommand] = []
        self._parts: dict[Ref, ParserPart] = {}
        self._flags = Builder("absl", SourceLocation(""))

    # -- Calls that the interpreter sees ------------------------------------------------------

    def called(self, name: str, given: Arguments, result: V, node: ast.expr) -> None:
        """Process the call of a function or class of a library."""
        if isinstance(result, LibraryResult) and name == _PARSER:
            self._begin(result, given, node)
        elif isinstance(result, LibraryResult) and name.rpartition(".")[2] == _HF:
            self._begin_hf(result, given, node)
        elif name.startswith(_ABSL):
            self._define_flag(name, given, node)
        elif not name.startswith("builtins."):
            for keyword in (*given.positional, *given.keywords.values()):
                # A library may add unknown options.
                if isinstance(keyword, Ref) and (part := self._part(keyword)) is not None:
                    part.builder.complete = False

    def method(self, owner: V, name: str, given: Arguments, node: ast.expr) -> V | None:
        """Return the result of a parser's method; None if the object is not a parser."""
        part = self._part(owner) if isinstance(owner, Ref) else None
        if part is None:
            return None
        match name:
            case "__init__":
                part.builder.keywords = _shown(given.keywords)
                self._take_parents(part.builder, given)
            case "add_argument" | "argument":
                self._add(part, given, node)
            case "add_argument_group":
                return self._made(f"{name}", part.builder, part.group, node)
            case "add_mutually_exclusive_group":
                return self._exclusive(part, given, node)
            case "add_subparsers":
                return self._subparsers(part.builder, given, node)
            case "add_parser":
                return self._subparser(part, given, node)
            case "set_defaults":
                part.builder.defaults.update(_shown(given.keywords))
            case "parse_args" | "parse_known_args" | "parse_intermixed_args":
                return self._parse(part.builder, given, name == "parse_known_args", node)
            case "parse_args_into_dataclasses":
                return self._parse_into_classes(part.builder, given, node)
            case "error" | "exit":
                raise PathEnds
        return None

    def _part(self, owner: Ref) -> ParserPart | None:
        if owner not in self._parts and isinstance(owner, Object):
            bases = owner.cls.externals()
            if _PARSER in bases:
                self._parts[owner] = ParserPart(Builder("argparse", owner.place, owner.keywords))
        return self._parts.get(owner)

    # -- argparse -----------------------------------------------------------------------------

    def _begin(self, made: LibraryResult, given: Arguments, node: ast.expr) -> None:
        builder = Builder("argparse", self.machine.place(node), _shown(given.keywords))
        self._take_parents(builder, given)
        self._parts[made] = ParserPart(builder)

    def _take_parents(self, builder: Builder, given: Arguments) -> None:
        parents = given.keywords.get("parents")
        if parents is None:
            return
        items, complete, _ = self.machine.iterated_known(parents)
        builder.complete = builder.complete and complete
        for item in items or ():
            part = self._part(item) if isinstance(item, Ref) else None
            if part is None:
                builder.complete = False
            else:
                builder.options += part.builder.options
                builder.defaults |= part.builder.defaults

    def _add(self, part: ParserPart, given: Arguments, node: ast.expr) -> None:
        builder = part.builder
        flags = [value.value for value in given.positional if isinstance(value, Constant)]
        known = [flag for flag in flags if isinstance(flag, str)]
        dest = given.keywords.get("dest")
        if not known and isinstance(dest, Constant):
            known = [str(dest.value)]
        if not given.complete or len(flags) != len(given.positional) or not known:
            builder.complete = False
            return
        keywords = _shown(given.keywords)
        if not self.machine.path.certain:
            # The call is uncertain, so the option cannot be missing.
            keywords.pop("required", None)
            if not known[0].startswith("-") or any(
                o.flags == tuple(known) for o in builder.options
            ):
                builder.complete = False
                return
        if part.group is not None:
            builder.exclusive[part.group].append(len(builder.options))
        builder.options.append(OptionSpec(tuple(known), keywords, self.machine.place(node)))

    def _made(self, name: str, builder: Builder, group: int | None, node: ast.expr) -> V:
        made = LibraryResult(f"argparse.ArgumentParser().{name}", (), {}, self.machine.place(node))
        self._parts[made] = ParserPart(builder, group)
        return made

    def _exclusive(self, part: ParserPart, given: Arguments, node: ast.expr) -> V:
        required = bool(constant_of(given.keywords.get("required")))
        part.builder.exclusive.append([])
        part.builder.exclusive_required.append(required and self.machine.path.certain)
        number = len(part.builder.exclusive) - 1
        return self._made("add_mutually_exclusive_group", part.builder, number, node)

    def _subparsers(self, builder: Builder, given: Arguments, node: ast.expr) -> V:
        builder.subcommand_dest = str(constant_of(given.keywords.get("dest"), ""))
        builder.subcommand_required = bool(constant_of(given.keywords.get("required")))
        made = LibraryResult(
            "argparse.ArgumentParser().add_subparsers", (), {}, self.machine.place(node)
        )
        self._parts[made] = ParserPart(builder, makes_commands=True)
        return made

    def _subparser(self, part: ParserPart, given: Arguments, node: ast.expr) -> V | None:
        name = given.get(0, "name")
        if not part.makes_commands or not isinstance(name, Constant):
            part.builder.complete = False
            return None
        below = Builder("argparse", self.machine.place(node), _shown(given.keywords))
        self._take_parents(below, given)
        aliases, _, _ = self.machine.iterated_known(given.keywords.get("aliases"))
        for alias in (name, *(aliases or ())):
            if isinstance(alias, Constant):
                part.builder.subcommands[str(alias.value)] = below
        made = LibraryResult(_PARSER, (), {}, self.machine.place(node))
        self._parts[made] = ParserPart(below)
        return made

    def _parse(self, builder: Builder, given: Arguments, known_only: bool, node: ast.expr) -> V:
        source = given.get(0, "args")
        argv = self._argv(source)
        namespace = LibraryResult("argparse.Namespace", (), {}, self.machine.place(node))
        if argv is not None:
            parsed = self._read(builder, argv, known_only, own=source is None)
            if parsed is not None and parsed.ends:
                self.machine.unknown("the run", "the command asks for help", node)
                raise PathEnds
            if parsed is not None:
                namespace.attributes.update(
                    {name: thawed(value) for name, value in parsed.values.items()}
                )
                # Another library, a subcommand or a given namespace may add attributes.
                complete = builder.complete and not parsed.problems
                sure = complete and not known_only and not builder.subcommands
                namespace.closed = sure and "namespace" not in given.keywords
        if not known_only:
            return namespace
        return Box.of("tuple", (namespace, Anything("arguments that the parser does not know")))

    def _argv(self, source: V | None) -> Sequence[str] | None:
        """Return the arguments to parse; None if unknown."""
        if source is None or (isinstance(source, Constant) and source.value is None):
            return self.machine.job.argv
        items, complete, _ = self.machine.iterated_known(source)
        job = self.machine.job
        if complete and items and list(items) == [argument(job, at) for at in range(len(job.argv))]:
            # All of sys.argv[1:]; the parser is informed about unknown ones.
            return job.argv
        known = [str(item.value) for item in items or () if isinstance(item, Constant)]
        return known if items is not None and complete and len(known) == len(items) else None

    def _read(
        self, builder: Builder, argv: Sequence[str], known_only: bool = False, own: bool = True
    ) -> ParsedCommand | None:
        size = len(builder.options) + len(builder.subcommands)
        if builder.parsed is not None and builder.parsed[0] == size and own:
            return builder.parsed[1]
        if len(self.parsed) >= MOST_PARSED:
            return None
        spec = builder.spec(known_only)
        parsed = parse(spec, tuple(argv), self.machine.job.folder)
        if own or tuple(argv) == self.machine.job.argv:
            parsed = placed(self.machine.job, parsed)
        if hasattr(self.machine.at, "lineno"):
            parsed = replace(parsed, at=self.machine.place(self.machine.at))
        builder.parsed = (size, parsed)
        if own or tuple(argv) == self.machine.job.argv:
            self.parsed.append(parsed)
            self.machine.options.update(parsed.values)
        return parsed

    # -- Data classes and flags ---------------------------------------------------------------

    def _begin_hf(self, made: LibraryResult, given: Arguments, node: ast.expr) -> None:
        source = given.get(0, "dataclass_types")
        items, complete, _ = self.machine.iterated_known(source)
        classes = items if items is not None else [source]
        builder = Builder("hf", self.machine.place(node), complete=complete or items is None)
        for cls in classes:
            if isinstance(cls, Class):
                builder.classes.append(cls)
                builder.options += [*_fields(cls)]
                # The base class of a library has unknown fields.
                builder.complete = builder.complete and not cls.externals()
            else:
                builder.complete = False
                builder.classes.append(None)  # type: ignore[arg-type]
        self._parts[made] = ParserPart(builder)

    def _parse_into_classes(self, builder: Builder, given: Arguments, node: ast.expr) -> V:
        source = given.get(0, "args")
        remaining = self.machine.truth(given.get(1, "return_remaining_strings") or Constant(False))
        argv = self._argv(source)
        parsed = (
            None
            if argv is None
            else self._read(builder, argv, remaining is not False, own=source is None)
        )
        objects: list[V] = []
        for cls in builder.classes:
            if cls is None or parsed is None:
                objects.append(Anything("the arguments of a library's class"))
                continue
            names = [option.flags[0] for option in _fields(cls)]
            known = {name: thawed(parsed.values[name]) for name in names if name in parsed.values}
            objects.append(self.machine.apply(cls, Arguments([], known, False), node))
        fields = sum(len([*_fields(cls)]) for cls in builder.classes if cls is not None)
        if len(builder.options) > fields:
            objects.append(Anything("the namespace of the other options"))
        if remaining:
            objects.append(Anything("the remaining arguments"))
        return Box.of("tuple", objects, complete=given.complete and remaining is not None)

    def _define_flag(self, name: str, given: Arguments, node: ast.expr) -> None:
        names: tuple[str, ...] = ("name", "default", "help")
        if name.endswith(("enum", "enum_class")):
            names = ("name", "default", "enum_values", "help")
        keywords = dict(zip(names, given.positional, strict=False)) | given.keywords
        flag = keywords.pop("name", None)
        if isinstance(flag, Constant):
            define = {"define": Constant(name.rpartition(".")[2]), **_shown(keywords)}
            place = self.machine.place(node)
            self._flags.options.append(OptionSpec((str(flag.value),), define, place))

    def read_flags(self) -> None:
        """Parse the flags, as ``absl.app.run`` does first."""
        # Modules of libraries define flags of their own.
        self._flags.complete = False
        self._read(self._flags, self.machine.job.argv)

    def flag(self, name: str) -> V | None:
        """Return the value of an absl flag; None if it is not a flag or unknown."""
        if self._flags.parsed is None:
            return None
        value = self._flags.parsed[1].values.get(name)
        return None if value is None else thawed(value)

    # -- Functions as commands ----------------------------------------------------------------

    def is_command(self, function: Function) -> bool:
        """Whether a function is a command of click or a main function of Hydra, by its decorators."""
        return any(
            _decorator(decorator) in (*_CLICK_COMMANDS, "hydra.main")
            for decorator in function.decorators
        )

    def given_to(self, function: Function) -> Iterator[tuple[Function, Arguments]]:
        """Return the functions that a command runs, with their arguments from the command line."""
        if any(_decorator(decorator) == "hydra.main" for decorator in function.decorators):
            yield function, Arguments([self._configuration(function)])
            return
        builder = self._click(function)
        parsed = self._read(builder, self.machine.job.argv)
        values = {} if parsed is None else parsed.values
        yield function, _for(function, values)
        for name, below in function.commands.items():
            if name in self.machine.job.argv:
                yield below, _for(below, values)
                return

    def fired(self, function: Function) -> Arguments:
        """Return the arguments that Fire passes to a function."""
        builder = Builder("fire", self._place_of(function))
        builder.options = [*_parameters(function, builder.place)]
        parsed = self._read(builder, self.machine.job.argv)
        return _for(function, {} if parsed is None else parsed.values)

    def of_lightning(self, given: Arguments, node: ast.expr) -> list[V]:
        """Return the model and the data module that ``LightningCLI`` creates from the command line."""
        builder = Builder("lightning", self.machine.place(node))
        builder.subcommand_required = bool(constant_of(given.keywords.get("run"), True))
        builder.complete = given.complete and not {"args", "parser_kwargs"} & given.keywords.keys()
        classes: dict[str, Class] = {}
        for at, (section, name) in enumerate(_OF_LIGHTNING.items()):
            cls = given.get(at, name)
            if not isinstance(cls, Class) or f"subclass_mode_{section}" in given.keywords:
                builder.options.append(OptionSpec((f"{section}.*",), {}, builder.place))
                continue
            classes[section] = cls
            builder.options += _of_class(cls, section, builder.place)
        parsed = self._read(builder, self.machine.job.argv)
        values = {} if parsed is None else parsed.values
        return [
            self.machine.apply(cls, Arguments([], _below(section, values), False), node)
            for section, cls in classes.items()
        ]

    def _click(self, function: Function) -> Builder:
        builder = Builder("click", self._place_of(function))
        if (known := self._parts.get(function)) is not None:
            return known.builder
        for decorator in function.decorators:
            if isinstance(decorator, LibraryResult) and decorator.name in _CLICK_OPTIONS:
                flags = [o.value for o in decorator.arguments if isinstance(o, Constant)]
                keywords = _shown(decorator.keywords)
                place = decorator.place or builder.place
                builder.options.append(OptionSpec(tuple(map(str, flags)), keywords, place))
            elif not (
                isinstance(decorator, LibraryResult) and _decorator(decorator).startswith("click.")
            ):
                builder.complete = builder.complete and _decorator(decorator).startswith(
                    "click.pass"
                )
        builder.subcommands = {
            name: self._click(command) for name, command in function.commands.items()
        }
        builder.subcommand_required = bool(builder.subcommands)
        self._parts[function] = ParserPart(builder)
        return builder

    def _configuration(self, function: Function) -> V:
        """Return the configuration that Hydra composes."""
        made = next(
            decorator for decorator in function.decorators if _decorator(decorator) == "hydra.main"
        )
        defaults = _shown(made.keywords) if isinstance(made, LibraryResult) else {}
        place = self._place_of(function)
        builder = Builder("hydra", place, defaults=defaults)
        parsed = self._read(builder, self.machine.job.argv)
        if parsed is None or not parsed.values:
            return Anything("the configuration of Hydra")
        config = LibraryResult("omegaconf.DictConfig", (), {}, place, closed=parsed.spec.complete)
        for name, value in parsed.values.items():
            config.attributes[name] = configured(thawed(value), place)
        return config

    def _place_of(self, function: Function) -> SourceLocation:
        return function.scope.module.place(function.node)


def configured(value: V, place: SourceLocation | None) -> V:
    """A configuration whose keys are also attributes, like OmegaConf's."""
    if isinstance(value, Box) and value.kind == "dict":
        config = LibraryResult("omegaconf.DictConfig", (), {}, place, closed=value.content.complete)
        for key, item in zip(value.content.keys, value.content.values, strict=True):
            if isinstance(key, Constant):
                config.attributes[str(key.value)] = configured(item, place)
        return config
    return value


def _decorator(value: V) -> str:
    """The name of a decorator."""
    return value.name if isinstance(value, (LibraryResult, External)) else ""


def _parameters(function: Function, place: SourceLocation) -> Iterator[OptionSpec]:
    """The parameters of a function as options."""
    args = function.node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [*([None] * (len(positional) - len(function.defaults))), *function.defaults]
    parameters = [
        *((node, default, "positional_or_keyword") for node, default in zip(
            positional, defaults, strict=True)),
        *((parameter, default, "keyword_only") for parameter, default in zip(
            args.kwonlyargs, function.keyword_defaults, strict=True)),
    ]  # fmt: skip
    for parameter, default, kind in parameters:
        keywords: dict[str, Value] = {"kind": Constant(kind)}
        if parameter.annotation is not None:
            keywords["annotation"] = Constant(ast.unparse(parameter.annotation))
        if default is not None:
            keywords["default"] = published(default)
        yield OptionSpec((parameter.arg,), keywords, place)
    for several, kind in ((args.vararg, "var_positional"), (args.kwarg, "var_keyword")):
        if several is not None:
            yield OptionSpec((several.arg,), {"kind": Constant(kind)}, place)


def _of_class(cls: Class, section: str, place: SourceLocation) -> Iterator[OptionSpec]:
    """The constructor parameters of a class as options of ``LightningCLI``; ``section.*`` if there may be others."""
    found = next(
        (parent.names["__init__"] for parent in cls.line() if "__init__" in parent.names), None
    )
    if not isinstance(found, Function) or found.is_changed:
        # The constructor of a library's class has unknown parameters.
        yield OptionSpec((f"{section}.*",), {}, place)
        return
    defined = found.scope.module.place(found.node)
    for parameter in list(_parameters(found, defined))[1:]:
        several = str(constant_of(parameter.keywords.get("kind"))).startswith("var_")
        name = "*" if several else parameter.flags[0]
        yield OptionSpec((f"{section}.{name}",), parameter.keywords, defined)


def _below(section: str, values: Mapping[str, Value]) -> dict[str, V]:
    """The values of one section, by parameter."""
    start = f"{section}."
    return {
        name.removeprefix(start): thawed(value)
        for name, value in values.items()
        if name.startswith(start)
    }


def _for(function: Function, values: Mapping[str, Value]) -> Arguments:
    """The arguments that a command receives by name; a preceding context or object is unknown."""
    args = function.node.args
    names = [posonlyarg.arg for posonlyarg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    known = {name: thawed(values[name]) for name in names if name in values}
    return Arguments([], known, False)


def _fields(cls: Class) -> Iterator[OptionSpec]:
    """The fields of a data class as options."""
    for parent in reversed(cls.line()):
        for statement in parent.node.body:
            if not isinstance(statement, ast.AnnAssign) or not isinstance(
                statement.target, ast.Name
            ):
                continue
            name = statement.target.id
            keywords: dict[str, Value] = {"annotation": Constant(ast.unparse(statement.annotation))}
            default = parent.names.get(name)
            if isinstance(default, LibraryResult) and default.name == "dataclasses.field":
                keywords |= _shown(default.keywords)
            elif default is not None:
                keywords["default"] = published(default)
            yield OptionSpec((name,), keywords, parent.module.place(statement))


def _shown(keywords: Mapping[str, V]) -> dict[str, Value]:
    return {name: published(value) for name, value in keywords.items()}
