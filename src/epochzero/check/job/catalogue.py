"""What stands in front of a Python program: one file a launcher, in ``launchers``.

A file says its ``names`` (and the ``modules`` of ``python -m`` that are the same), what it
``starts`` (a command, a Python script, a batch file, a container, nothing), its ``subcommands``, and
the options that take a value, each with what the value means for the job: a key of `MEANINGS` in
``meanings``, or nothing. What is not listed is a switch. A new launcher is a new file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from epochzero.check.job.model import Word


@dataclass(frozen=True, slots=True)
class Option:
    """An option with a value.

    Attributes:
        name: the one of its names by which it is known to rules: the first long one.
        meaning: what its value says of the job; empty for nothing that is needed here.
    """

    name: str
    meaning: str


@dataclass(frozen=True)
class Launcher:
    """What stands in front of a command or a Python script.

    Attributes:
        names: of the program; two words where its second word makes it another (``docker compose``).
        starts: what its operands are: ``command``, ``script`` (Python), ``batch`` (a batch file),
            ``container`` (a command, after the image), ``services`` (of a compose file), ``make``
            (targets) or ``nothing``.
        modules: that do the same after ``python -m``.
        subcommands: one of which must be given, if any.
        operands: that stand before what is started, such as the duration of ``timeout``.
        options: by each of their names.
        pairs: options with two values.
        switches: options without a value that change what is started: ``module`` or ``command``.
        otherwise: fields of the job that it sets when it is not told.
        sets: environment variables that it sets, each with the field of the job that is its value.
        passes: by an option, the variables that it makes the launcher set, each with the option whose
            value it has.
        assignments: whether ``A=1`` may stand before the command.
        sees_folder: whether a container sees the current folder.
        runs_scripts: whether a Python file may stand in the place of a command.
        groups: words that may stand before the subcommand: ``ray job submit``.
        directives: how lines of a batch file begin that hold its options.
        flags: options without a value, where all of them are listed.
        submitted_from: variables that it sets to the folder in which it is called.
        home_unless: options without which the job starts in the home folder; empty where it does not.
        environments: folders of the project in which it keeps the Python that it starts.
        set_on_nodes: a variable that is set on the machines where it runs jobs; empty where that is
            the machine on which it is called.
    """

    names: tuple[str, ...]
    starts: str
    modules: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    pairs: frozenset[str] = frozenset()
    switches: Mapping[str, str] = field(default_factory=dict)
    otherwise: Mapping[str, int] = field(default_factory=dict)
    sets: Mapping[str, str] = field(default_factory=dict)
    passes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    assignments: bool = False
    sees_folder: bool = False
    runs_scripts: bool = False
    groups: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    submitted_from: tuple[str, ...] = ()
    home_unless: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    set_on_nodes: str = ""


@cache
def launchers() -> Mapping[str, Launcher]:
    """The launchers by the names of their programs."""
    return {name: launcher for launcher in _all() for name in launcher.names}


@cache
def modules() -> Mapping[str, Launcher]:
    """The launchers by the modules of ``python -m`` that do the same."""
    return {name: launcher for launcher in _all() for name in launcher.modules}


@cache
def _all() -> tuple[Launcher, ...]:
    folder = files("epochzero.check.job") / "launchers"
    named = sorted((entry.name, entry) for entry in folder.iterdir())
    return tuple(_launcher(entry.read_text("utf-8")) for name, entry in named if name[0] != ".")


def _launcher(text: str) -> Launcher:
    raw = tomllib.loads(text)
    return Launcher(
        names=tuple(raw["names"]),
        starts=raw["starts"],
        modules=tuple(raw.get("modules", ())),
        subcommands=tuple(raw.get("subcommands", ())),
        operands=tuple(raw.get("operands", ())),
        options=_by_alias(raw.get("options", {})),
        pairs=frozenset(raw.get("pairs", ())),
        switches={
            name: kind for names, kind in raw.get("switches", {}).items() for name in names.split()
        },
        otherwise=raw.get("otherwise", {}),
        sets=raw.get("sets", {}),
        passes=raw.get("passes", {}),
        assignments=raw.get("assignments", False),
        sees_folder=raw.get("sees_folder", False),
        runs_scripts=raw.get("runs_scripts", False),
        groups=tuple(raw.get("groups", ())),
        flags=frozenset(raw.get("flags", ())),
        directives=tuple(raw.get("directives", ())),
        submitted_from=tuple(raw.get("submitted_from", ())),
        home_unless=tuple(raw.get("home_unless", ())),
        environments=tuple(raw.get("environments", ())),
        set_on_nodes=raw.get("set_on_nodes", ""),
    )


def _by_alias(raw: Mapping[str, str]) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for names, meaning in raw.items():
        aliases = names.split()
        name = next((alias for alias in aliases if alias.startswith("--")), aliases[0])
        options |= {alias: Option(name, meaning) for alias in aliases}
    return options


@dataclass(frozen=True, slots=True)
class Taken:
    """The words of a launcher, taken apart.

    Attributes:
        options: that have a value, and switches with an empty one, in their order.
        rest: the words from the first operand on.
        switched: what its switches change of what is started.
    """

    options: tuple[tuple[Option, Word], ...]
    rest: tuple[Word, ...]
    switched: str = ""


def take(launcher: Launcher, words: Sequence[Word]) -> Taken:
    """The options in front of the first operand, with their values.

    Args:
        launcher: whose words they are.
        words: those after its name, and after its subcommand.
    """
    options: list[tuple[Option, Word]] = []
    switched, at = "", 0
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if text == "--":
            break
        if not text.startswith("-") or text == "-":
            at -= 1
            break
        name, equals, value = text.partition("=")
        option = launcher.options.get(name)
        if name in launcher.switches:
            switched = launcher.switches[name]
        elif name in launcher.pairs:
            at += 2
        elif equals or (option and option.meaning == "optional"):
            options.append((option or Option(name, ""), _part(word, value)))
        elif option and at < len(words):
            options.append((option, words[at]))
            at += 1
        else:
            options.append(_attached(launcher, word) or (Option(name, ""), _part(word, "")))
    return Taken(tuple(options), tuple(words[at:]), switched)


def _attached(launcher: Launcher, word: Word) -> tuple[Option, Word] | None:
    """A short option with its value in one word: ``-N2``."""
    option = launcher.options.get(word.text[:2])
    if option is None or word.text.startswith("--") or len(word.text) < 3:
        return None
    return option, _part(word, word.text[2:])


def _part(word: Word, text: str) -> Word:
    return Word(text, word.place, word.known)
