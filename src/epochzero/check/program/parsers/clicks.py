"""Click's command lines: options, flags, arguments and commands of a group.

Source: Click's documentation, "Options", "Arguments" and "Commands and Groups". Long options are not abbreviated, and
options of a group precede the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.program.parsers.model import (
    ArgumentProblem,
    OptionSpec,
    ParsedCommand,
    ParserSpec,
    given_at,
    nearest,
    plain,
)
from epochzero.check.program.values import (
    Anything,
    Constant,
    External,
    Instance,
    Items,
    Value,
    constant_of,
)

_BOOLEANS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}
_HELP = "--help"


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Parse a command line like Click; see `epochzero.check.program.arguments.parse`."""
    reading = _CommandLine(spec, list(argv))
    reading.read()
    return ParsedCommand(reading.values, tuple(reading.problems), tuple(reading.unknowns), spec)


class _EndError(Exception):
    """Click would exit here."""


@dataclass(frozen=True)
class _Option:
    """An option or argument, with the meaning of its declaration."""

    spec: OptionSpec
    name: str
    flags: tuple[str, ...]
    off: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its name in Click's messages."""
        return max(self.flags, key=len) if self.flags else self.name.upper()

    @property
    def is_argument(self) -> bool:
        return not self.flags

    def keyword(self, name: str) -> object:
        """A keyword if it is known; else None."""
        value = self.spec.keywords.get(name)
        return value.value if isinstance(value, Constant) else None

    @property
    def takes_value(self) -> bool:
        flag = self.keyword("is_flag") or self.off or "flag_value" in self.spec.keywords
        return self.is_argument or not (flag or self.keyword("count"))

    @property
    def nargs(self) -> int:
        nargs = self.keyword("nargs")
        return nargs if isinstance(nargs, int) else 1

    @property
    def uncertain(self) -> bool:
        """Whether code of the program processes its value."""
        return any(name in self.spec.keywords for name in ("cls", "callback"))


def _option(spec: OptionSpec) -> _Option:
    flags: list[str] = []
    off: list[str] = []
    name = ""
    for keyword in spec.flags:
        if not keyword.startswith("-"):
            name = keyword
            continue
        on, slash, other = keyword.partition("/")
        flags.append(on.strip())
        if slash:
            off.append(other.strip())
    if not name and flags:
        name = max(flags, key=lambda flag: len(flag) - len(flag.lstrip("-"))).lstrip("-")
    return _Option(spec, name.replace("-", "_").lower(), tuple(flags), tuple(off))


@dataclass
class _CommandLine:
    """One command line, from left to right."""

    spec: ParserSpec
    argv: list[str]
    values: dict[str, Value] = field(default_factory=dict)
    problems: list[ArgumentProblem] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = [_option(option) for option in self.spec.options]
        self.given: dict[str, list[tuple[str, ...]]] = {}
        self.rest: list[str] = []

    def read(self) -> None:
        """Parse everything, including the subcommand."""
        try:
            self._options()
            self._arguments()
            for option in self.options:
                self._take(option)
            if self.spec.subcommands:
                self._subcommand()
        except _EndError:
            return

    def _problem(self, problem: ArgumentProblem) -> None:
        self.problems.append(problem)

    def _options(self) -> None:
        """Remove the options; the rest are arguments."""
        by_flag = {flag: option for o in self.options for option in [o] for flag in o.flags + o.off}
        arguments = list(self.argv)
        while arguments:
            argument = arguments.pop(0)
            if argument == "--":
                self.rest += arguments
                return
            if not argument.startswith("-") or argument == "-":
                self.rest.append(argument)
                if self.spec.subcommands:
                    self.rest += arguments
                    return
                continue
            self._one(argument, arguments, by_flag)

    def _one(self, argument: str, arguments: list[str], by_flag: Mapping[str, _Option]) -> None:
        flag, equals, value = argument.partition("=")
        if flag not in by_flag and not argument.startswith("--") and argument[:2] in by_flag:
            # -b4, or several flags in one word: -vq.
            flag, equals, value = argument[:2], "", argument[2:]
            if not by_flag[flag].takes_value and value:
                arguments.insert(0, f"-{value}")
                value = ""
            equals = "=" if value else ""
        option = by_flag.get(flag)
        if option is None:
            if flag == _HELP and self.spec.add_help:
                self.unknowns.append(
                    Unknown("the run", "the command asks for help", given_at(flag))
                )
                raise _EndError
            self._no_such(flag, value)
            return
        if not option.takes_value:
            self.given.setdefault(option.name, []).append((flag,))
            return
        taken = [value] if equals else []
        while len(taken) < option.nargs and arguments:
            taken.append(arguments.pop(0))
        if len(taken) < option.nargs:
            wanted = "an argument" if option.nargs == 1 else f"{option.nargs} arguments"
            message = f"Option '{flag}' requires {wanted}."
            self._problem(ArgumentProblem("missing", flag, "", message, option.spec.place))
            raise _EndError
        self.given.setdefault(option.name, []).append((flag, *taken))

    def _no_such(self, flag: str, value: str) -> None:
        if self.spec.known_only or not self.spec.complete:
            self.rest.append(flag)
            return
        near = nearest(flag, [name for option in self.options for name in option.flags])
        self._problem(
            ArgumentProblem(
                "unknown", flag, value, f"No such option: {flag}", self.spec.place, near=near
            )
        )

    def _arguments(self) -> None:
        """Assign the rest to the arguments in order; an argument of any number takes as many as it can."""
        if self.spec.subcommands or not self.spec.complete:
            return
        arguments = [option for option in self.options if option.is_argument]
        after = sum(max(option.nargs, 0) for option in arguments)
        left = list(self.rest)
        for option in arguments:
            after -= max(option.nargs, 0)
            count = option.nargs if option.nargs > 0 else max(len(left) - after, 0)
            taken, left = left[:count], left[count:]
            if taken:
                self.given[option.name] = [("", *taken)]
        if left and not self.spec.known_only:
            message = f"Got unexpected extra argument{'s' * (len(left) > 1)} ({' '.join(left)})"
            self._problem(ArgumentProblem("unknown", left[0], "", message, self.spec.place))

    def _take(self, option: _Option) -> None:
        """The value of an option, given or not."""
        given = self.given.get(option.name)
        if option.is_argument and not self.spec.complete:
            self.values[option.name] = Anything("some options are not known")
            return
        if not given:
            self._missing(option)
            self.values.setdefault(option.name, self._default(option))
            return
        place = given_at(*(text for use in given for text in use if text))
        if option.uncertain:
            self.values[option.name] = Anything("the program's own function converts it")
            return
        if not option.takes_value:
            self.values[option.name] = self._flag(option, given, place)
            return
        uses = [tuple(self._converted(option, text, place) for text in use[1:]) for use in given]
        values = [
            use[0] if option.nargs == 1 and len(use) == 1 else Items("tuple", use) for use in uses
        ]
        multiple = option.keyword("multiple")
        self.values[option.name] = Items("tuple", tuple(values)) if multiple else values[-1]

    @staticmethod
    def _flag(option: _Option, given: Sequence[tuple[str, ...]], place: SourceLocation) -> Value:
        if option.keyword("count"):
            return Constant(len(given), place)
        if "flag_value" in option.spec.keywords:
            return option.spec.keywords["flag_value"]
        return Constant(given[-1][0] not in option.off, place)

    @staticmethod
    def _default(option: _Option) -> Value:
        default = option.spec.keywords.get("default")
        if default is not None:
            return default
        if option.uncertain or "envvar" in option.spec.keywords or option.keyword("prompt"):
            return Anything("not given on the command line")
        if option.keyword("multiple") or option.nargs == -1:
            return Items("tuple", ())
        return Constant(None if option.takes_value else False, option.spec.place)

    def _missing(self, option: _Option) -> None:
        required = option.spec.keywords.get("required")
        needed = option.keyword("required") is True or (
            required is None and option.is_argument and option.nargs != -1
        )
        elsewhere = {"default", "envvar", "prompt"} & set(option.spec.keywords)
        if not needed or elsewhere or option.uncertain or not self.spec.complete:
            return
        kind = "argument" if option.is_argument else "option"
        message = f"Missing {kind} '{option.label}'."
        self._problem(ArgumentProblem("missing", option.label, "", message, option.spec.place))

    def _subcommand(self) -> None:
        if not self.rest:
            if self.spec.subcommand_required:
                self._problem(
                    ArgumentProblem("missing", "COMMAND", "", "Missing command.", self.spec.place)
                )
            return
        name = self.rest[0]
        below = self.spec.subcommands.get(name)
        if below is None:
            if self.spec.complete:
                near = nearest(name, self.spec.subcommands)
                message = f"No such command '{name}'."
                self._problem(
                    ArgumentProblem("choice", "COMMAND", name, message, self.spec.place, near=near)
                )
            return
        reading = _CommandLine(below, self.rest[1:], self.values, self.problems, self.unknowns)
        reading.read()

    # -- Types -----------------------------------------------------------------------------------

    def _converted(self, option: _Option, text: str, place: SourceLocation) -> Value:
        kind = option.spec.keywords.get("type")
        if kind is None:
            default = option.keyword("default")
            name = type(default).__name__ if isinstance(default, bool | int | float) else "str"
            return self._simple(option, name, text, place)
        if isinstance(kind, External):
            name = kind.name.removeprefix("builtins.").removeprefix("click.").lower()
            name = {"integer": "int", "string": "str", "boolean": "bool"}.get(name, name)
            if name in ("int", "float", "str", "bool"):
                return self._simple(option, name, text, place)
        if isinstance(kind, Instance):
            return self._instance(option, kind, text, place)
        return Anything("the program's own function converts it")

    def _simple(self, option: _Option, name: str, text: str, place: SourceLocation) -> Value:
        try:
            if name == "bool":
                return Constant(_BOOLEANS[text.strip().lower()], place)
            if name in ("int", "float"):
                return Constant(int(text) if name == "int" else float(text), place)
        except (KeyError, ValueError):
            what = {"int": "integer", "bool": "boolean"}.get(name, name)
            return self._invalid("type", option, text, f"'{text}' is not a valid {what}.")
        return Constant(text, place)

    def _instance(self, option: _Option, kind: Instance, text: str, place: SourceLocation) -> Value:
        name = kind.made_by.removeprefix("click.").removeprefix("types.")
        if name == "Choice":
            return self._choice(option, kind, text, place)
        if name in ("IntRange", "FloatRange"):
            value = self._simple(option, "int" if name == "IntRange" else "float", text, place)
            return self._in_range(option, kind, text, value)
        if name == "Path":
            kept = "path_type" not in kind.keywords
            return (
                Constant(text, place)
                if kept
                else Instance("pathlib.Path", (Constant(text, place),), place=place)
            )
        if name == "File":
            mode = kind.arguments[0] if kind.arguments else Constant("r")
            return Instance("builtins.open", (Constant(text, place), mode), place=place)
        return Anything("the program's own type converts it")

    def _choice(self, option: _Option, kind: Instance, text: str, place: SourceLocation) -> Value:
        try:
            keyword = plain(kind.arguments[0] if kind.arguments else kind.keywords["choices"])
            choices = [str(choice) for choice in keyword]  # type: ignore[attr-defined]
        except (KeyError, TypeError, ValueError):
            return Constant(text, place)
        sensitive = constant_of(kind.keywords.get("case_sensitive"), True)
        for choice in choices:
            if text == choice or (sensitive is False and text.casefold() == choice.casefold()):
                return Constant(choice, place)
        names = ", ".join(f"'{choice}'" for choice in choices)
        message = f"'{text}' is not one of {names}."
        return self._invalid("choice", option, text, message, nearest(text, choices))

    def _in_range(self, option: _Option, kind: Instance, text: str, value: Value) -> Value:
        bounds = dict(zip(("min", "max"), kind.arguments, strict=False)) | dict(kind.keywords)
        if not isinstance(value, Constant) or not isinstance(value.value, int | float):
            return value
        open_bounds = "min_open" in bounds or "max_open" in bounds or "clamp" in bounds
        low, high = (bounds.get(name, Constant(None)) for name in ("min", "max"))
        for bound, sign in ((low, 1), (high, -1)):
            if open_bounds or not isinstance(bound, Constant):
                continue
            if isinstance(bound.value, int | float) and sign * (value.value - bound.value) < 0:
                relation = "<" if sign > 0 else ">"
                message = f"{text} is not in the range: it is {relation} {bound.value}."
                return self._invalid("type", option, text, message)
        return value

    def _invalid(
        self, kind: str, option: _Option, text: str, message: str, near: str = ""
    ) -> Value:
        whole = f"Invalid value for '{option.label}': {message}"
        place = option.spec.place
        self._problem(
            ArgumentProblem(
                "choice" if kind == "choice" else "type",
                option.label,
                text,
                whole,
                place,
                near=near,
            )
        )
        return Anything("not a value that is allowed")
