"""Run argparse on a command line in a separate process: a JSON request in, a JSON answer out.

The file runs by path, isolated, without EpochZero and the job on the module path, so it may import only the
standard library. It rebuilds the parser from its description; defaults, abbreviations, ``nargs`` and subcommands
then mean exactly what argparse makes of them. Functions of the job (``type=``, custom actions) are missing here, and
their results are unknown.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

CPU_S = 2
MEMORY_BYTES = 1 << 30

_KINDS = (
    ("unrecognized arguments", "unknown"),
    ("ignored explicit argument", "unknown"),
    ("unknown parser", "choice"),
    ("invalid choice", "choice"),
    ("not allowed with argument", "conflict"),
    ("ambiguous option", "ambiguous"),
    ("required", "missing"),
    ("expected ", "missing"),
)


class _Untold:
    """The unknown result of the program's own code."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __copy__(self) -> _Untold:
        return _Untold(self.reason)

    def append(self, _item: object) -> None:
        """As a list that is the default of ``action="append"``."""

    def extend(self, _items: object) -> None:
        """As a list that is the default of ``action="extend"``."""

    def __add__(self, _number: object) -> _Untold:
        return self


class _Reference(_Untold):
    """A value that only the requesting process knows, by its number."""

    def __init__(self, number: int) -> None:
        super().__init__("a default that is not known is added to")
        self.number = number


class _LibraryResult:
    """What a function of a library would return: its name and arguments."""

    def __init__(self, name: str, *arguments: str) -> None:
        self.name = name
        self.arguments = arguments


class _Stop(Exception):  # noqa: N818 - no error: the program would end here
    """The program would exit here."""


class _Own(argparse.Action):
    """An action that the job defines."""

    def __call__(
        self, _parser: object, namespace: argparse.Namespace, _values: object, _flag: object = None
    ) -> None:
        setattr(namespace, self.dest, _Untold("the program's own action sets it"))


class _Parser(argparse.ArgumentParser):
    """argparse's parser, which records problems instead of printing them."""

    notes: list[dict[str, Any]]
    numbers: dict[int, int]
    given: dict[str, list[str]]

    def note(self, message: str, action: argparse.Action | None, value: str, kind: str) -> None:
        option = "/".join(action.option_strings) or action.dest if action is not None else ""
        number = None if action is None else self.numbers.get(id(action))
        self.notes.append(
            {"kind": kind, "number": number, "option": option, "value": value, "message": message}
        )

    def error(self, message: str) -> NoReturn:
        kind = next((kind for start, kind in _KINDS if start in message), "unknown")
        names = message.partition(": ")[2].split(", ") if "are required" in message else []
        for name in names or [_name_in(message)]:
            action = next((a for a in self._actions if _name_of(a) == name), None)
            quoted = message.split("'") if kind in ("choice", "unknown") else []
            self.note(message, action, quoted[1] if len(quoted) > 1 else "", kind)
            if action is None:
                self.notes[-1]["option"] = name
        raise _Stop

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _Stop

    def format_help(self) -> str:
        """Return nothing: help is not printed."""
        return ""

    format_usage = format_help

    def _print_message(self, message: str, file: object = None) -> None:
        """Print nothing."""

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if arg_strings or action.option_strings:
            flags = action.option_strings[-1:]
            self.given.setdefault(action.dest, []).extend([*flags, *arg_strings])
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            self.note(str(error), action, arg_string, "type")
        except (SyntaxError, RecursionError, MemoryError) as error:
            self.note(f"{type(error).__name__}: {error}", action, arg_string, "type")
        return _Untold("not of the type that is asked for")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(value, _Untold):
            return
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            # Without the subcommand's parser the rest cannot be parsed.
            if isinstance(action, argparse._SubParsersAction):
                raise
            self.note(str(error), action, str(value), "choice")


def _name_of(action: argparse.Action) -> str | None:
    return argparse._get_action_name(action)


def _name_in(message: str) -> str:
    """The argument in a message: ``argument --lr: expected one argument``."""
    if message.startswith("argument "):
        return message[len("argument ") :].partition(": ")[0]
    if message.startswith("ambiguous option: "):
        return message.split()[2]
    return message.removeprefix("one of the arguments ").removesuffix(" is required")


# -- Types -------------------------------------------------------------------------------------


def _path(text: str) -> _LibraryResult:
    return _LibraryResult("pathlib.Path", text)


def _file(mode: str) -> Callable[[str], _LibraryResult]:
    return lambda text: _LibraryResult("builtins.open", text, mode)


def _untold(_text: str) -> _Untold:
    return _Untold("the program's own function converts it")


def string_to_bool(text: str) -> bool:
    """Convert a truth value like transformers.

    Raises:
        ArgumentTypeError: the text is not a truth value.
    """
    truth = text.lower()
    if truth in ("yes", "true", "t", "y", "1"):
        return True
    if truth in ("no", "false", "f", "n", "0"):
        return False
    raise argparse.ArgumentTypeError(
        f"Truthy value expected: got {text} but expected one of yes/no, true/false, t/f, y/n, 1/0 "
        "(case insensitive)."
    )


_TYPES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "complex": complex,
    "path": _path,
    "literal": ast.literal_eval,
    "json": json.loads,
    "truth": string_to_bool,
    "untold": _untold,
}
_ACTIONS: Mapping[str, Any] = {"boolean": argparse.BooleanOptionalAction, "own": _Own}


def _type(name: str) -> Callable[[str], Any]:
    kind, _, mode = name.partition(":")
    return _file(mode) if kind == "file" else _TYPES[kind]


# -- The request and its answer ----------------------------------------------------------------


def _decoded(value: Mapping[str, Any]) -> Any:
    if "reference" in value:
        return _Reference(value["reference"])
    if "items" in value:
        items = [_decoded(item) for item in value["items"]]
        return tuple(items) if value["kind"] == "tuple" else items
    # argparse recognizes this text by its identity.
    return argparse.SUPPRESS if value["value"] == argparse.SUPPRESS else value["value"]


def _encoded(value: Any) -> dict[str, Any]:
    if isinstance(value, _Reference):
        return {"reference": value.number}
    if isinstance(value, _Untold):
        return {"untold": value.reason}
    if isinstance(value, _LibraryResult):
        return {"made": value.name, "arguments": value.arguments}
    if isinstance(value, dict):
        return {
            "keys": [_encoded(k) for k in value],
            "items": [_encoded(v) for v in value.values()],
        }
    if isinstance(value, list | tuple | set):
        return {"kind": type(value).__name__, "items": [_encoded(item) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    return {"untold": f"a value of type {type(value).__name__}"}


def _build(parser: _Parser, description: Mapping[str, Any]) -> None:
    """Add the options, groups and subcommands of a description to a parser."""
    groups = [parser.add_mutually_exclusive_group(required=r) for r in description["exclusive"]]
    for option in description["options"]:
        keywords = dict(option["keywords"])
        for name in ("default", "const"):
            if name in keywords:
                keywords[name] = _decoded(keywords[name])
        if "type" in keywords:
            keywords["type"] = _type(keywords["type"])
        if "action" in keywords:
            keywords["action"] = _ACTIONS.get(keywords["action"], keywords["action"])
        place = parser if option["group"] is None else groups[option["group"]]
        action = place.add_argument(*option["flags"], **keywords)
        parser.numbers[id(action)] = option["number"]
    parser.set_defaults(
        **{name: _decoded(value) for name, value in description["defaults"].items()}
    )
    if description["subcommands"]:
        dest = {"dest": description["dest"]} if description["dest"] else {}
        commands = parser.add_subparsers(required=description["required"], **dest)
        for name, other in description["subcommands"].items():
            _build(_new(commands.add_parser, other, parser, name), other)


def _formatter(prog: str) -> argparse.HelpFormatter:
    # A fixed width avoids the query of the terminal, whose imports are slow.
    return argparse.HelpFormatter(prog, width=80)


def _new(
    make: Callable[..., _Parser], description: Mapping[str, Any], above: _Parser | None, *name: str
) -> _Parser:
    parser = make(
        *name,
        prefix_chars=description["prefix_chars"],
        allow_abbrev=description["allow_abbrev"],
        add_help=description["add_help"],
        conflict_handler="resolve",
        formatter_class=_formatter,
    )
    parser.notes = [] if above is None else above.notes
    parser.numbers = {} if above is None else above.numbers
    parser.given = {} if above is None else above.given
    return parser


def _answer(description: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the command line and return values and problems."""
    parser = _new(_Parser, description, None)
    try:
        _build(parser, description)
    except (TypeError, ValueError, argparse.ArgumentError) as error:
        return {"undefined": str(error)}
    # Not earlier: argparse imports some modules when a parser is built.
    _limit()
    namespace = argparse.Namespace()
    ended = False
    try:
        _, extras = parser.parse_known_args(description["argv"], namespace)
        if extras and not description["known_only"]:
            _note_extras(parser, extras)
    except _Stop:
        # argparse checks required arguments last, after reading all others.
        ended = not (parser.notes and "are required" in parser.notes[-1]["message"])
    values = {name: _encoded(value) for name, value in vars(namespace).items()}
    return {
        "values": {} if ended else values,
        "given": parser.given,
        "problems": parser.notes,
        "ended": ended,
    }


def _note_extras(parser: _Parser, extras: Sequence[str]) -> None:
    """Record one problem for each unknown option, or one for all if there are only values."""
    message = f"unrecognized arguments: {' '.join(extras)}"
    chars = tuple(parser.prefix_chars)
    options = [extra for extra in extras if extra.startswith(chars) and not _number(extra)]
    for extra in options or extras[:1]:
        name, _, value = extra.partition("=")
        parser.note(message, None, value, "unknown")
        parser.notes[-1]["option"] = name


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _limit() -> None:
    """Forbid further files, sockets and processes, and limit time and memory."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def main() -> None:
    """Read a request from standard input and write the answer to standard output."""
    with open(0, encoding="utf-8", closefd=False) as stream:
        request = json.load(stream)
    answer = _answer(request)
    with open(1, "w", encoding="utf-8", closefd=False) as stream:
        json.dump(answer, stream)


if __name__ == "__main__":
    main()
