"""argparse: the standard library's own parser, run in a child process on the given command line.

The child (`epochzero.check.program.parser_process`) receives the description as JSON, an empty environment and limits
on time, memory, files and sockets; code of the job never runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    Own,
    Value,
    constant_of,
)
from epochzero.file_access import open_file

# Not imported, since that would import argparse in this process too.
_CHILD = str(Path(__file__).parents[1] / "parser_process.py")
TIMEOUT_S = 10.0
LARGEST_ARGUMENTS_BYTES = 1 << 20

_TYPES = {
    "int": "int",
    "float": "float",
    "str": "str",
    "bool": "bool",
    "complex": "complex",
    "open": "file:r",
    "pathlib.Path": "path",
    "pathlib.PosixPath": "path",
    "ast.literal_eval": "literal",
    "json.loads": "json",
    "transformers.hf_argparser.string_to_bool": "truth",
}
_ACTIONS = {
    "store", "store_const", "store_true", "store_false", "append", "append_const", "count", "help",
    "version", "extend",
}  # fmt: skip
NONE = Constant(None)
_NO_VALUE = {"store_const", "store_true", "store_false", "append_const", "count", "help", "version"}
# argparse rejects these keywords with the actions that take no value.
_OF_VALUES = {"type", "nargs", "choices"}


class _CannotTellError(Exception):
    """The parser is not known well enough to read the command line."""

    def __init__(self, reason: str, place: SourceLocation) -> None:
        super().__init__(reason)
        self.place = place


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Parse a command line like argparse; see `epochzero.check.program.arguments.parse`."""
    request = _Request(spec)
    try:
        arguments = _expanded(spec, argv, folder)
        request.argv = arguments
        payload = {
            **request.parser(spec),
            "argv": arguments,
            "known_only": spec.known_only or not request.complete,
        }
        answer = _asked(payload, spec.place)
    except _CannotTellError as error:
        unknown = Unknown("the arguments", str(error), error.place)
        return ParsedCommand({}, (), (*request.unknowns, unknown), spec)
    return _Answer(request, answer).parsed()


def _expanded(spec: ParserSpec, argv: Sequence[str], folder: Path | None) -> list[str]:
    """The arguments, with those of files (``@args.txt``, one per line) inserted."""
    found: list[str] = []
    for argument in argv:
        if not argument or argument[0] not in spec.fromfile_prefix_chars:
            found.append(argument)
            continue
        try:
            if folder is None:
                raise OSError("the directory of the job is unknown")
            path = folder / argument[1:]
            with open_file(path) as stream:
                data = stream.read(LARGEST_ARGUMENTS_BYTES + 1)
            if len(data) > LARGEST_ARGUMENTS_BYTES:
                raise OSError(f"larger than {LARGEST_ARGUMENTS_BYTES >> 20} MB")
            found.extend(data.decode("utf-8").splitlines())
        except (OSError, ValueError) as error:
            raise _CannotTellError(f"{argument}: {error}", given_at(argument)) from error
    return found


def _asked(payload: Mapping[str, Any], place: SourceLocation) -> Mapping[str, Any]:
    """Run the child and return its answer."""
    command = [sys.executable, "-I", "-S", _CHILD]
    try:
        text = json.dumps(payload)
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "surrogatepass"),
            capture_output=True,
            env={},
            timeout=TIMEOUT_S,
            check=True,
        )
        answer: Mapping[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, RecursionError, subprocess.SubprocessError) as error:
        reason = f"argparse could not be run on them ({type(error).__name__})"
        raise _CannotTellError(reason, place) from error
    if "undefined" in answer:
        raise _CannotTellError(f"argparse refuses the definition: {answer['undefined']}", place)
    return answer


# -- The request -------------------------------------------------------------------------------


@dataclass
class _Request:
    """The description of a parser and its subcommands as JSON, and what it omits."""

    spec: ParserSpec
    argv: list[str] = field(default_factory=list)
    options: list[OptionSpec] = field(default_factory=list)
    references: list[Value] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.complete = all(spec.complete for spec in _tree(self.spec))

    def parser(self, spec: ParserSpec) -> dict[str, Any]:
        """Describe one parser, with its subcommands.

        Raises:
            _CannotTellError: an unknown property of an option determines how the others are read.
        """
        # An abbreviation of one option may be an unknown option.
        abbreviate = spec.allow_abbrev and self.complete
        group_of = {n: g for g, numbers in enumerate(spec.exclusive) for n in numbers}
        options = [
            {**self._option(option), "group": group_of.get(number)}
            for number, option in enumerate(spec.options)
            if self.complete or _is_flag(option, spec)
        ]
        required = spec.exclusive_required or (False,) * len(spec.exclusive)
        return {
            "options": options,
            "exclusive": [bool(r) and not self._strange() for r in required],
            "defaults": {name: self._value(value) for name, value in spec.defaults.items()},
            "subcommands": {n: self.parser(s) for n, s in spec.subcommands.items()},
            "required": spec.subcommand_required and not self._strange(),
            "dest": spec.subcommand_dest,
            "prefix_chars": spec.prefix_chars,
            "allow_abbrev": abbreviate,
            "add_help": spec.add_help,
        }

    def _strange(self) -> bool:
        """Whether an argument may be an option that the spec does not know."""
        if self.complete:
            return False
        flags = {f for spec in _tree(self.spec) for option in spec.options for f in option.flags}
        return any(
            a[:1] in self.spec.prefix_chars and a.partition("=")[0] not in flags
            for a in self.argv
            if a
        )

    def _option(self, option: OptionSpec) -> dict[str, Any]:
        self.options.append(option)
        number = len(self.options) - 1
        action, nargs = self._action(option), self._nargs(option)
        keywords: dict[str, Any] = {} if action is None else {"action": action}
        if nargs is not None:
            keywords["nargs"] = nargs
        for name in ("default", "const"):
            if name in option.keywords:
                keywords[name] = self._value(option.keywords[name])
        if constant_of(option.keywords.get("type", NONE), "") is not None:
            keywords["type"] = self._type(option, option.keywords["type"])
        choices = self._choices(option)
        if choices is not None:
            keywords["choices"] = choices
        dest = option.keywords.get("dest")
        if isinstance(dest, Constant) and isinstance(dest.value, str):
            keywords["dest"] = dest.value
        if self._required(option) and not self._strange():
            keywords["required"] = True
        if action == "version":
            keywords["version"] = ""
        if action in _NO_VALUE:
            keywords = {k: v for k, v in keywords.items() if k not in _OF_VALUES}
        return {"number": number, "flags": list(option.flags), "keywords": keywords}

    def _required(self, option: OptionSpec) -> bool:
        required = option.keywords.get("required", Constant(False))
        if not isinstance(required, Constant):
            self._leave(option, "whether it is required is not known")
        return isinstance(required, Constant) and bool(required.value)

    def _action(self, option: OptionSpec) -> str | None:
        action = option.keywords.get("action")
        if action is None:
            return None
        if isinstance(action, Constant) and action.value in _ACTIONS:
            return str(action.value)
        if isinstance(action, External) and action.name == "argparse.BooleanOptionalAction":
            return "boolean"
        # The rest can be read only if the number of values of a custom action is known.
        if "nargs" not in option.keywords and self._used(option):
            raise _CannotTellError(f"{option.flags[0]} has a custom action", option.place)
        self._leave(option, "an action of the program's own sets it")
        return "own"

    def _nargs(self, option: OptionSpec) -> int | str | None:
        nargs = option.keywords.get("nargs")
        if isinstance(nargs, External) and nargs.name.startswith("argparse."):
            return {
                "REMAINDER": "...",
                "OPTIONAL": "?",
                "ZERO_OR_MORE": "*",
                "ONE_OR_MORE": "+",
            }.get(nargs.name.removeprefix("argparse."))
        if nargs is None or (isinstance(nargs, Constant) and isinstance(nargs.value, int | str)):
            return None if nargs is None else nargs.value  # type: ignore[return-value]
        if not isinstance(nargs, Constant) and self._used(option):
            raise _CannotTellError(
                f"the number of values of {option.flags[0]} is unknown", option.place
            )
        return None

    def _used(self, option: OptionSpec) -> bool:
        """Whether the command line may name the option; true for positional arguments."""
        if option.flags[0][:1] not in self.spec.prefix_chars:
            return True
        names = [a.partition("=")[0] for a in self.argv if a[:1] in self.spec.prefix_chars and a]
        return any(
            # Abbreviated, or followed by its value (-b4).
            flag.startswith(name) or (len(flag) == 2 and name.startswith(flag))
            for name in names
            for flag in option.flags
        )

    def _type(self, option: OptionSpec, value: Value) -> str:
        if isinstance(value, Instance) and value.made_by == "argparse.FileType":
            mode = value.arguments[0] if value.arguments else value.keywords.get("mode")
            known = constant_of(mode)
            return f"file:{known}" if isinstance(known, str) else "file:r"
        if isinstance(value, External):
            name = _TYPES.get(value.name.removeprefix("builtins."))
            if name is not None:
                return name
        what = value.name if isinstance(value, External | Own) else "a function"
        self._leave(option, f"its type is {what}, which is not executed")
        return "untold"

    def _choices(self, option: OptionSpec) -> list[Any] | None:
        value = option.keywords.get("choices", NONE)
        if constant_of(value, "") is None:
            return None
        try:
            if isinstance(value, Items) and value.kind == "dict":
                value = Items("list", value.keys, complete=value.complete)
            choices: list[Any] = list(plain(value))  # type: ignore[call-overload]
            json.dumps(choices)
        except (TypeError, ValueError) as error:
            self._leave(option, f"its choices are not known: {error}")
            return None
        return choices

    def _value(self, value: Value) -> dict[str, Any]:
        """Encode a value as JSON, or as a reference to a value that only this process knows."""
        if isinstance(value, Constant) and isinstance(value.value, str | int | float | None):
            return {"value": value.value}
        if isinstance(value, Items) and value.complete and value.kind in ("list", "tuple"):
            return {"kind": value.kind, "items": [self._value(item) for item in value.values]}
        if isinstance(value, External) and value.name == "argparse.SUPPRESS":
            return {"value": "==SUPPRESS=="}
        self.references.append(value)
        return {"reference": len(self.references) - 1}

    def _leave(self, option: OptionSpec, reason: str) -> None:
        if option.flags:
            self.unknowns.append(Unknown(f"argument {option.flags[-1]}", reason, option.place))


def _is_flag(option: OptionSpec, spec: ParserSpec) -> bool:
    return bool(option.flags) and option.flags[0][:1] in spec.prefix_chars


def _tree(spec: ParserSpec) -> list[ParserSpec]:
    return [spec, *(below for s in spec.subcommands.values() for below in _tree(s))]


# -- The answer --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """The child's answer, as values with their locations."""

    request: _Request
    payload: Mapping[str, Any]

    def parsed(self) -> ParsedCommand:
        """Return the parsed command line."""
        problems = tuple(self._problem(problem) for problem in self.payload["problems"])
        values = {
            name: self._of(name, value)
            for name, value in self.payload["values"].items()
            if not name.startswith("_")
        }
        unknowns = list(self.request.unknowns)
        spec = self.request.spec
        if not self.request.complete:
            unknowns.append(Unknown("the arguments", "some options are not known", spec.place))
        truths = tuple(self._false_truths())
        ends = self.payload["ended"] and not problems
        return ParsedCommand(values, problems + truths, tuple(unknowns), spec, ends=ends)

    def _of(self, name: str, value: Mapping[str, Any]) -> Value:
        given = self.payload["given"].get(name)
        if given:
            return self._value(value, given_at(*given))
        default = self._default(name)
        if isinstance(default, Constant):
            return self._value(value, default.origin)
        if default is not None and "made" not in value:
            return default
        return self._value(value, self._place(name))

    def _default(self, name: str) -> Value | None:
        """The default as written: that of the last option with this destination."""
        for spec in reversed(_tree(self.request.spec)):
            if name in spec.defaults:
                return spec.defaults[name]
        found = [o for o in self._options(name) if "default" in o.keywords]
        return found[0].keywords["default"] if found else None

    def _place(self, name: str) -> SourceLocation | None:
        return next((option.place for option in self._options(name)), None)

    def _options(self, name: str) -> list[OptionSpec]:
        return [option for option in self.request.options if _destination(option) == name]

    def _value(self, value: Mapping[str, Any], origin: SourceLocation | None) -> Value:
        if "reference" in value:
            known: Value = self.request.references[value["reference"]]
            return known
        if "untold" in value:
            return Anything(value["untold"])
        if "made" in value:
            arguments = tuple(Constant(argument, origin) for argument in value["arguments"])
            return Instance(value["made"], arguments, place=origin)
        if "items" in value:
            items = tuple(self._value(item, origin) for item in value["items"])
            keys = tuple(self._value(key, origin) for key in value.get("keys", ()))
            return Items("dict" if "keys" in value else value["kind"], items, keys)
        return Constant(value["value"], origin)

    def _problem(self, payload: Mapping[str, Any]) -> ArgumentProblem:
        number = payload["number"]
        option = None if number is None else self.request.options[number]
        return ArgumentProblem(
            payload["kind"],
            payload["option"],
            payload["value"],
            payload["message"],
            self.request.spec.place if option is None else option.place,
            near=self._near(payload, option),
        )

    def _near(self, payload: Mapping[str, Any], option: OptionSpec | None) -> str:
        if payload["kind"] == "unknown":
            return nearest(payload["option"], [f for o in self.request.options for f in o.flags])
        if payload["kind"] == "choice" and option is not None:
            choices = self.request._choices(option) or []
            return nearest(payload["value"], [str(choice) for choice in choices])
        if payload["kind"] == "choice":
            return nearest(payload["value"], self.request.spec.subcommands)
        return ""

    def _false_truths(self) -> list[ArgumentProblem]:
        """Record options of ``type=bool`` that receive a text for false: every text is true."""
        found = []
        for option in self.request.options:
            given = self.payload["given"].get(_destination(option), ())
            wrong = [text for text in given if text.lower() in ("false", "no", "0", "off")]
            if wrong and option.keywords.get("type") == External("builtins.bool"):
                message = f"argument {'/'.join(option.flags)}: bool({wrong[0]!r}) is True"
                flag = option.flags[-1]
                found.append(
                    ArgumentProblem("type", flag, wrong[0], message, option.place, fatal=False)
                )
        return found


def _destination(option: OptionSpec) -> str:
    """The attribute in which argparse stores an option."""
    dest = option.keywords.get("dest")
    if isinstance(dest, Constant) and isinstance(dest.value, str):
        return dest.value
    long = [flag for flag in option.flags if len(flag) > 1 and flag[0] == flag[1]]
    flag = (long or list(option.flags) or [""])[0]
    return flag.lstrip("-+/").replace("-", "_") if flag[:1] in "-+/" else flag
