"""What a program says of its command line, and what a command line comes to."""

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
"""``absent`` and ``unreadable`` are of a file that the command line is composed with."""


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """An option or positional argument, as the program defines it.

    Attributes:
        flags: as written: ``("-b", "--batch-size")``; of a positional argument, of a field of a
            dataclass, of a flag of absl and of a parameter of a function its bare name. For click
            all the declarations: ``("--lr", "rate")``.
        keywords: as written: ``action``, ``nargs``, ``type``, ``choices``, ``default``,
            ``required``, ``dest``, ``const``, ``multiple``, ``is_flag`` and so on. For absl ``define``
            names the function: ``DEFINE_integer``. For dataclass fields and parameters of functions
            ``annotation`` is its source; for parameters ``kind`` is as `inspect.Parameter` names it,
            in lower case: ``var_keyword``. For Lightning the names are ``model.lr``, and ``model.*``
            where there may be others.
        place: of the definition.
    """

    flags: tuple[str, ...]
    keywords: Mapping[str, Value]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class ParserSpec:
    """A parser, as the program builds it.

    Attributes:
        kind: the library.
        options: in the order of their definition.
        subcommands: by name; an alias is an entry of its own.
        subcommand_required: whether one must be given.
        subcommand_dest: attribute that holds its name; empty when there is none.
        exclusive: groups of which at most one may be given, as numbers of options.
        exclusive_required: for each of these groups whether one must be given.
        defaults: of ``set_defaults``. For Hydra ``config_path`` and ``config_name`` as given to
            ``hydra.main``.
        known_only: whether arguments that it does not know are left alone (``parse_known_args``,
            ``ignore_unknown_options``).
        prefix_chars: that options begin with.
        allow_abbrev: whether long options may be shortened.
        fromfile_prefix_chars: that name a file of arguments; empty for none.
        place: where the parser is made.
        complete: whether all options are known; otherwise an argument that none of them takes may
            still be one.
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
    """Something wrong with a command line.

    Attributes:
        kind: what.
        option: that it is about, as given or as defined; all of them where several are meant.
        value: that was given; empty when none was.
        message: as the program's parser would print it.
        place: of the option's definition, or of the parser's.
        fatal: whether the program would end there; otherwise it would go on with a wrong value.
        near: the option or choice that was probably meant; empty when none is near.
    """

    kind: Problem
    option: str
    value: str
    message: str
    place: SourceLocation
    fatal: bool = True
    near: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a command line comes to.

    Attributes:
        values: by destination, each with its origin: ``<command>`` for what is given, the place of
            the option for defaults.
        problems: in the order of their discovery.
        unknowns: what the spec did not tell.
        spec: of the parser.
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
    """The place of arguments of the command line."""
    return SourceLocation("<command>", code=" ".join(arguments))


def told(value: Value | None, default: object = None) -> object:
    """The value of a constant; ``default`` for what is no constant."""
    return value.value if isinstance(value, Constant) else default


def nearest(name: str, others: Iterable[str]) -> str:
    """What was probably meant by ``name``; empty when nothing is near."""
    found = difflib.get_close_matches(name, list(others), n=1, cutoff=0.7)
    return found[0] if found else ""


def plain(value: Value) -> object:
    """A value as Python's own, when all of it is known.

    Raises:
        ValueError: some of it is not known.
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
