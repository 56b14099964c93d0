"""Python Fire: the parameters of a function as options.

Source: Fire's guide. ``--name value`` and ``--name=value``, dashes for underscores, ``--name`` and ``--noname`` for truth
values, positional arguments; values are parsed as Python literals.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from epochzero.check.findings import Unknown
from epochzero.check.program.parsers.model import (
    ArgumentProblem,
    OptionSpec,
    ParsedCommand,
    ParserSpec,
    given_at,
    nearest,
)
from epochzero.check.program.values import Anything, Constant, Value

_SEVERAL = ("var_positional", "var_keyword")


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Parse a command line like Fire; see `epochzero.check.program.arguments.parse`."""
    if spec.subcommands:
        below = spec.subcommands.get(argv[0].replace("-", "_")) if argv else None
        if below is not None:
            return parse(below, argv[1:], folder)
        return _untold(spec, "which member is called is not known")
    # A separator or a flag of Fire itself changes the meaning of the rest.
    if "-" in argv or "--" in argv or {"--help", "-h"} & set(argv):
        return _untold(spec, "Fire's own flags are among them")
    parameters = {o.flags[0]: o for o in spec.options if _kind(o) not in _SEVERAL}
    values: dict[str, Value] = {}
    problems: list[ArgumentProblem] = []
    positional: list[str] = []
    arguments = list(argv)
    while arguments:
        argument = arguments.pop(0)
        if not _is_flag(argument):
            positional.append(argument)
            continue
        name, equals, value = argument.lstrip("-").replace("-", "_", 0).partition("=")
        name = _named(name.replace("-", "_"), parameters)
        bare = not equals and (not arguments or _is_flag(arguments[0]))
        if bare and name not in parameters and name.removeprefix("no") in parameters:
            values[name.removeprefix("no")] = Constant(False, given_at(argument))
        elif name not in parameters and not any(_kind(o) == "var_keyword" for o in spec.options):
            if not bare and not equals:
                arguments.pop(0)
            problems += _unknown(spec, argument, value, parameters)
        elif bare:
            values[name] = Constant(True, given_at(argument))
        else:
            text = value if equals else arguments.pop(0)
            values[name] = _literal(text, argument if equals else f"{argument} {text}")
    for name, text in zip(
        [n for n, o in parameters.items() if n not in values and _kind(o) != "keyword_only"],
        positional,
        strict=False,
    ):
        values[name] = _literal(text, text)
    for name, option in parameters.items():
        if name not in values and "default" in option.keywords:
            values[name] = option.keywords["default"]
        elif name not in values:
            problems += _missing(spec, name, option)
    return ParsedCommand(values, tuple(problems), (), spec)


def _untold(spec: ParserSpec, reason: str) -> ParsedCommand:
    return ParsedCommand({}, (), (Unknown("the arguments", reason, spec.place),), spec)


def _kind(option: OptionSpec) -> object:
    kind = option.keywords.get("kind")
    return kind.value if isinstance(kind, Constant) else ""


def _is_flag(argument: str) -> bool:
    return argument.startswith("--") or (argument[:1] == "-" and argument[1:2].isalpha())


def _named(name: str, parameters: dict[str, OptionSpec]) -> str:
    """The only parameter that begins with this letter; Fire accepts it as a shortcut."""
    starts = [parameter for parameter in parameters if parameter.startswith(name)]
    return starts[0] if len(name) == 1 and name not in parameters and len(starts) == 1 else name


def _literal(text: str, given: str) -> Value:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return Constant(text, given_at(given))
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return Constant(value, given_at(given))
    return Anything("a literal of the command line")


def _unknown(
    spec: ParserSpec, argument: str, value: str, parameters: dict[str, OptionSpec]
) -> list[ArgumentProblem]:
    if not spec.complete:
        return []
    flag = argument.partition("=")[0]
    near = nearest(flag.lstrip("-").replace("-", "_"), parameters)
    message = f"ERROR: Could not consume arg: {argument}"
    near = f"--{near}" if near else ""
    return [ArgumentProblem("unknown", flag, value, message, spec.place, near=near)]


def _missing(spec: ParserSpec, name: str, option: OptionSpec) -> list[ArgumentProblem]:
    if not spec.complete:
        return []
    message = f"ERROR: The function received no value for the required argument: {name}"
    return [ArgumentProblem("missing", f"--{name}", "", message, option.place)]
