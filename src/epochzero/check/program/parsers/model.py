"""Parsers that a program builds, and parsed command lines."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.program.values import Anything, Constant, Instance, Items, Value

NOWHERE = SourceLocation("")
Kind = Literal["argparse", "click", "absl", "hf", "fire", "hydra", "lightning"]
Problem = Literal[
    "unknown", "missing", "choice", "type", "conflict", "ambiguous", "absent", "unreadable"
]
"""``absent`` and ``unreadable`` concern a file from which the command line is composed."""


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """An option or positional argument, as the program defines it.

    Attributes:
        flags: as written: ``("-b", "--batch-size")``; the bare name of a positional argument, of a dataclass field,
            of an absl flag and of a function parameter. For click all declarations: ``("--lr", "rate")``.
        keywords: as written: ``action``, ``nargs``, ``type``, ``choices``, ``default``, ``required``, ``dest``,
            ``const``, ``multiple``, ``is_flag`` and so on. For absl ``define`` names the function:
            ``DEFINE_integer``. For dataclass fields and function parameters ``annotation`` is its source; for
            parameters ``kind`` is the name by `inspect.Parameter` in lower case: ``var_keyword``. For Lightning the
            names are ``model.lr``, and ``model.*`` if there may be others.
        place: location of the definition.
    """

    flags: tuple[str, ...]
    keywords: Mapping[str, Value]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class ParserSpec:
    """A parser, as the program builds it.

    Attributes:
        kind: library.
        options: in the order of their definition.
        subcommands: by name; an alias is a separate entry.
        subcommand_required: whether one must be given.
        subcommand_dest: attribute that stores its name; empty if there is none.
        exclusive: groups of mutually exclusive options, as indices of options.
        exclusive_required: for each of these groups, whether one option must be given.
        defaults: from ``set_defaults``. For Hydra ``config_path`` and ``config_name`` as given to ``hydra.main``.
        known_only: whether unknown arguments are ignored (``parse_known_args``, ``ignore_unknown_options``).
        prefix_chars: characters that options begin with.
        allow_abbrev: whether long options may be abbreviated.
        fromfile_prefix_chars: characters that mark a file of arguments; empty for none.
        place: where the parser is created.
        complete: whether all options are known; otherwise an unknown argument may be valid.
        add_help: whether ``-h`` is an option.
    """

    kind: Kind
    options: tuple[OptionSpec, ...] = ()
    subcommands: Mapping[str, ParserSpec] = field(default_factory=dict)
    subcommand_required: bool = False
    subcommand_dest: str = ""
    exclusive: tuple[tuple[int, ...], ...] = ()
    exclusive_required: tuple[bool, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict)
    known_only: bool = False
    prefix_chars: str = "-"
    allow_abbrev: bool = True
    fromfile_prefix_chars: str = ""
    place: SourceLocation = NOWHERE
    complete: bool = True
    add_help: bool = True


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """A problem of a command line.

    Attributes:
        kind: kind of the problem.
        option: the option, as given or as defined; all of them if several are meant.
        value: the given value; empty if there is none.
        message: as the program's parser would print it.
        place: where the option is defined, or where the parser is created.
        fatal: whether the program would exit; otherwise it would continue with a wrong value.
        near: the option or choice that was probably meant; empty if none is similar.
    """

    kind: Problem
    option: str
    value: str
    message: str
    place: SourceLocation
    fatal: bool = True
    near: str = ""


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A parsed command line.

    Attributes:
        values: by destination, each with its origin: ``<command>`` for a given argument, the definition of the option
            for a default.
        problems: in the order of their discovery.
        unknowns: what the spec does not determine.
        spec: the parser.
        at: the call that parses, where the program ends if an argument is refused.
        ends: whether the program prints its help or version there and exits.
    """

    values: Mapping[str, Value]
    problems: tuple[ArgumentProblem, ...]
    unknowns: tuple[Unknown, ...]
    spec: ParserSpec
    at: SourceLocation = NOWHERE
    ends: bool = False


def given_at(*arguments: str) -> SourceLocation:
    """The location of arguments of the command line."""
    return SourceLocation("<command>", code=" ".join(arguments))


def nearest(name: str, others: Iterable[str]) -> str:
    """The most similar of several names; empty if none is similar."""
    found = difflib.get_close_matches(name, list(others), n=1, cutoff=0.7)
    return found[0] if found else ""


def plain(value: Value) -> object:
    """Convert a fully known value to a Python value.

    Raises:
        ValueError: part of it is unknown.
    """
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Items) and value.complete:
        items = [plain(item) for item in value.values]
        if value.kind == "dict":
            try:
                return dict(zip([plain(key) for key in value.keys], items, strict=True))
            except TypeError as error:
                raise ValueError(str(error)) from error
        return tuple(items) if value.kind == "tuple" else items
    if isinstance(value, Instance) and value.made_by in ("range", "builtins.range"):
        return list(_range(value))
    reason = value.reason if isinstance(value, Anything) else type(value).__name__
    raise ValueError(reason or "not known")


_LONGEST_RANGE = 10_000


def _range(value: Instance) -> range:
    bounds = [plain(argument) for argument in value.arguments]
    if not 1 <= len(bounds) <= 3 or not all(isinstance(bound, int) for bound in bounds):
        raise ValueError("range")
    numbers = range(*(bound for bound in bounds if isinstance(bound, int)))
    if len(numbers) > _LONGEST_RANGE:
        raise ValueError("a long range")
    return numbers
