"""absl's flags: ``--name=value``, ``--name value``, ``--noname``, also with a single dash.

Source: ``absl.flags`` (documentation of `FlagValues` and of the ``DEFINE_`` functions).
"""

from __future__ import annotations

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
    plain,
)
from epochzero.check.program.values import Anything, Constant, Items, Value, constant_of

# Flags that absl itself defines, in absl.app, absl.flags and absl.logging.
_BUILT_IN = frozenset(
    """
    help h ? helpshort helpfull helpxml flagfile undefok run_with_pdb pdb_post_mortem pdb
    run_with_profiling profile_file use_cprofile_for_profiling only_check_args logtostderr
    alsologtostderr log_dir v verbosity logger_levels stderrthreshold showprefixforinfo
    """.split()
)
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Parse a command line like absl; see `epochzero.check.program.arguments.parse`."""
    flags = {name: option for option in spec.options for name in _names(option)}
    values = {
        option.flags[0]: option.keywords.get("default", Constant(None, option.place))
        for option in spec.options
    }
    problems: list[ArgumentProblem] = []
    arguments = list(argv)
    while arguments:
        argument = arguments.pop(0)
        if argument == "--":
            break
        if not argument.startswith("-") or argument == "-":
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        option = flags.get(name)
        if option is not None and _kind(option) == "boolean":
            value = value if equals else "true"
        elif option is not None and not equals:
            if not arguments:
                message = f"Missing value for flag --{name}"
                problems.append(ArgumentProblem("missing", f"--{name}", "", message, option.place))
                break
            value = arguments.pop(0)
        elif option is None and _kind(flags.get(name.removeprefix("no"))) == "boolean":
            option, value = flags[name.removeprefix("no")], "false"
        if option is None:
            problems += _unknown(spec, name, value, flags)
            continue
        values[option.flags[0]] = _taken(option, value, argument, problems, values)
    problems += [problem for option in spec.options for problem in _missing(option, values)]
    unknowns = () if spec.complete else (Unknown("flags", "some are not known", spec.place),)
    return ParsedCommand(values, tuple(problems), unknowns, spec)


def _names(option: OptionSpec) -> tuple[str, ...]:
    short = option.keywords.get("short_name")
    if isinstance(short, Constant) and isinstance(short.value, str):
        return (option.flags[0], short.value)
    return option.flags[:1]


def _kind(option: OptionSpec | None) -> str:
    """``integer`` for ``DEFINE_integer`` and ``DEFINE_multi_integer``."""
    define = option.keywords.get("define") if option else None
    name = str(define.value) if isinstance(define, Constant) else ""
    kind = name.removeprefix("DEFINE_").removeprefix("multi_")
    return "boolean" if kind == "bool" else kind


def _unknown(
    spec: ParserSpec, name: str, value: str, flags: dict[str, OptionSpec]
) -> list[ArgumentProblem]:
    if not spec.complete or spec.known_only or name in _BUILT_IN or not name:
        return []
    near = nearest(name, flags)
    message = f"Unknown command line flag '{name}'"
    near = f"--{near}" if near else ""
    return [ArgumentProblem("unknown", f"--{name}", value, message, spec.place, near=near)]


def _taken(
    option: OptionSpec,
    text: str,
    argument: str,
    problems: list[ArgumentProblem],
    values: dict[str, Value],
) -> Value:
    place = given_at(argument if "=" in argument else f"{argument} {text}")
    value = _converted(option, text)
    if isinstance(value, ArgumentProblem):
        problems.append(value)
        return Anything("not a value that is allowed")
    define = option.keywords.get("define")
    constant = Constant(value, place) if not isinstance(value, list) else None
    if constant is None:
        return Items("list", tuple(Constant(part, place) for part in value))  # type: ignore[union-attr]
    if isinstance(define, Constant) and "multi_" in str(define.value):
        before = values.get(option.flags[0])
        earlier = (
            before.values
            if isinstance(before, Items) and before is not option.keywords.get("default")
            else ()
        )
        return Items("list", (*earlier, constant))
    return constant if _kind(option) else Anything("a flag of the program's own type")


def _converted(
    option: OptionSpec, text: str
) -> str | int | float | bool | list[str] | ArgumentProblem:
    flag, kind = f"--{option.flags[0]}", _kind(option)
    try:
        if kind == "integer":
            return _bounded(option, int(text, 0))
        if kind == "float":
            return _bounded(option, float(text))
        if kind == "boolean":
            if text.lower() not in _TRUE + _FALSE:
                raise ValueError("Non-boolean argument to boolean flag")
            return text.lower() in _TRUE
    except ValueError as error:
        message = f"flag {flag}={text}: {error}"
        return ArgumentProblem("type", flag, text, message, option.place)
    if kind == "enum":
        return _of_enum(option, flag, text)
    if kind in ("list", "spaceseplist"):
        return text.split("," if kind == "list" else None)
    return text


def _bounded(option: OptionSpec, number: float) -> float:
    for name, sign in (("lower_bound", 1), ("upper_bound", -1)):
        bound = option.keywords.get(name)
        limit = bound.value if isinstance(bound, Constant) else None
        if isinstance(limit, int | float) and sign * (number - limit) < 0:
            raise ValueError(f"{number} is beyond the {name.replace('_', ' ')} {limit}")
    return number


def _of_enum(option: OptionSpec, flag: str, text: str) -> str | ArgumentProblem:
    try:
        choices = plain(option.keywords.get("enum_values", Anything()))
    except ValueError:
        return text
    if not isinstance(choices, list | tuple):
        return text
    sensitive = constant_of(option.keywords.get("case_sensitive"), True)
    names = [str(choice) for choice in choices]
    if text in names or not sensitive:
        return text
    message = f"flag {flag}={text}: value should be one of <{'|'.join(names)}>"
    return ArgumentProblem("choice", flag, text, message, option.place, near=nearest(text, names))


def _missing(option: OptionSpec, values: dict[str, Value]) -> list[ArgumentProblem]:
    required = option.keywords.get("required")
    value = values[option.flags[0]]
    if not (isinstance(required, Constant) and required.value is True):
        return []
    if not (isinstance(value, Constant) and value.value is None):
        return []
    flag = f"--{option.flags[0]}"
    message = f"flag {flag}=None: Flag {flag} must have a value other than None."
    return [ArgumentProblem("missing", flag, "", message, option.place)]
