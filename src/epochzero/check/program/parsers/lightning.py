"""Lightning's ``LightningCLI``: a subcommand, and the parameters of the job's classes as options.

Source: its documentation and that of jsonargparse. ``--model.lr 0.1``, ``--model.lr=0.1`` and the same keys in the files
of ``--config``; later ones override earlier ones. Problems are reported only under ``model`` and ``data``, whose classes
are the job's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.program.configuration import Unreadable, load
from epochzero.check.program.parsers.model import (
    ArgumentProblem,
    OptionSpec,
    ParsedCommand,
    ParserSpec,
    given_at,
    nearest,
)
from epochzero.check.program.values import Constant, Value, constant_of, entries_of

SUBCOMMANDS = ("fit", "validate", "test", "predict")
_TOP = frozenset(
    """
    config seed_everything trainer model data optimizer lr_scheduler ckpt_path verbose
    return_predictions weights_only help print_config
    """.split()
)
"""Prefixes of a subcommand's options, unless a subclass adds others."""
_FLAGS = ("help", "print_config")
_TYPES: Mapping[str, tuple[type, ...]] = {"int": (int,), "float": (float, int)}


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Parse a command line like LightningCLI; see `epochzero.check.program.arguments.parse`."""
    reader = _Reader(spec, folder)
    arguments = list(argv)
    if spec.subcommand_required:
        if not arguments or arguments[0] not in SUBCOMMANDS:
            return reader.without_subcommand(arguments)
        arguments.pop(0)
    reader.read(arguments)
    return reader.parsed()


@dataclass
class _Reader:
    """The command line, word by word."""

    spec: ParserSpec
    folder: Path | None
    values: dict[str, Value] = field(default_factory=dict)
    problems: list[ArgumentProblem] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)
    helps: bool = False

    def __post_init__(self) -> None:
        self.options = {option.flags[0]: option for option in self.spec.options}
        # A class of a library, or one that accepts any keyword, has unknown parameters.
        self.open = {name for name in ("model", "data") if f"{name}.*" in self.options}

    def without_subcommand(self, arguments: list[str]) -> ParsedCommand:
        """Find the subcommand, which determines how the rest is read."""
        first = arguments[0] if arguments else ""
        if first[:1] == "-":  # options that precede it
            reason = "options precede the subcommand"
            return ParsedCommand(
                {}, (), (Unknown("the arguments", reason, self.spec.place),), self.spec
            )
        message = f'error: Expected "subcommand" to be one of {{{",".join(SUBCOMMANDS)}}}, but it was {first!r}'
        kind, near = ("choice", nearest(first, SUBCOMMANDS)) if first else ("missing", "")
        problem = ArgumentProblem(kind, "subcommand", first, message, self.spec.place, near=near)  # type: ignore[arg-type]
        return ParsedCommand({}, (problem,), (), self.spec)

    def read(self, arguments: list[str]) -> None:
        """Parse options, each with its value after ``=`` or in the next word."""
        while arguments:
            word = arguments.pop(0)
            name, equals, text = word.removeprefix("--").partition("=")
            if word in ("-c", "--config") or name == "config":
                text = text if equals else arguments.pop(0) if arguments else ""
                self.file(text, given_at(f"--config {text}"))
            elif word == "-h" or name.partition(".")[0] in _FLAGS or name.endswith(".help"):
                self.helps = True
            else:
                given = word
                if not equals and arguments and arguments[0][:2] != "--":
                    text = arguments.pop(0)
                    given = f"{word} {text}"
                self.key(
                    name.rstrip("+"),
                    Constant(_literal(text), given_at(given)),
                    word.partition("=")[0],
                )

    def file(self, text: str, at: SourceLocation) -> None:
        """Add the keys of a configuration file."""
        path = Path(text) if self.folder is None else self.folder / text
        config = load(path, "yaml", text)
        if isinstance(config, Unreadable):
            self.unknowns.append(Unknown(f"the configuration {text}", config.reason, at))
            self.open |= {"model", "data"}
            return
        for section in ("model", "data"):
            for name, key, value in _items(config, section):
                self.key(f"{section}.{name}", value, f"{section}.{name}", key.origin)

    def key(self, name: str, value: Value, shown: str, at: SourceLocation | None = None) -> None:
        """Add a value for a key, from the command line or a file."""
        top, dot, below = name.partition(".")
        option = self.options.get(name)
        if top not in _TOP:
            self.unknown(shown, [f"--{text}" for text in (*self.options, *_TOP)], at)
        elif option is not None:
            self.values[name] = value
            self.typed(option, value, shown, at)
        elif top in ("model", "data") and dot and top not in self.open:
            first = f"{top}.{below.partition('.')[0]}"
            if first in self.options:
                self.values[first] = self.options[first].keywords.get("default", Constant(None))
            else:
                self.unknown(shown, [f"--{option}" for option in self.options], at)
        elif top in ("model", "data"):
            self.open.add(top)

    def unknown(self, shown: str, others: Sequence[str], at: SourceLocation | None) -> None:
        if not self.spec.complete:
            return
        message = (
            f'error: Validation failed: Key "{shown}" is not expected'
            if at
            else f"error: Unrecognized arguments: {shown}"
        )
        last = f".{shown.rpartition('.')[2].removeprefix('--')}"
        same = next((other for other in others if other.endswith(last)), "")
        near = same or nearest(f"--{shown.removeprefix('--')}", others)
        problem = ArgumentProblem("unknown", shown, "", message, at or self.spec.place, near=near)
        self.problems.append(problem)

    def typed(
        self, option: OptionSpec, value: Value, shown: str, at: SourceLocation | None
    ) -> None:
        """Record a text that is not a number."""
        wanted = constant_of(option.keywords.get("annotation"), "")
        types = _TYPES.get(str(wanted))
        if types is None or not isinstance(value, Constant) or value.value is None:
            return
        given = _literal(value.value) if isinstance(value.value, str) else value.value
        if not isinstance(given, types) or isinstance(given, bool):
            name = shown.removeprefix("--")
            message = (
                f"error: Parser key \"{name}\": Expected a <class '{wanted}'>. Got value: {given!r}"
            )
            place = at or option.place
            self.problems.append(ArgumentProblem("type", shown, str(given), message, place))

    def parsed(self) -> ParsedCommand:
        """Return all values, with defaults, and record what is missing."""
        if self.helps:
            return ParsedCommand({}, (), (Unknown("the arguments", "the command asks for help", self.spec.place),),
                          self.spec)  # fmt: skip
        for name, option in self.options.items():
            if name.endswith(".*") or name in self.values:
                continue
            if "default" in option.keywords:
                self.values[name] = option.keywords["default"]
            elif self.spec.complete and name.partition(".")[0] not in self.open:
                message = f'error: Validation failed: Key "{name}" is required but not included in config object or its value is None.'
                self.problems.append(
                    ArgumentProblem("missing", f"--{name}", "", message, option.place)
                )
        return ParsedCommand(self.values, tuple(self.problems), tuple(self.unknowns), self.spec)


def _items(config: Value, section: str) -> Iterator[tuple[str, Constant, Value]]:
    """The keys of a section of a configuration."""
    for key, value in entries_of(config):
        if key.value == section:
            for name, below in entries_of(value):
                yield str(name.value), name, below


def _literal(text: str) -> int | float | bool | str | None:
    """Parse a text like YAML."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.lower() in ("null", "~"):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
