"""The catalogue of failure signatures: loads, validates and matches them.

A signature is one TOML file below ``signatures/``; ``docs/signatures.md`` describes its fields.
The engine contains no knowledge of single signatures, and a new signature is one new file.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from epochzero import compiled, taxonomy
from epochzero.diagnose.gpu_memory import held_by_others
from epochzero.diagnose.linux_signals import LinuxSignal
from epochzero.errors import CatalogError

CONDITIONS = {"gpu_held_by_others": held_by_others}
"""What a pattern cannot decide, by the name that a signature gives it."""
SIGNALS, PBS_SIGNALS = 128, 256
"""Exit statuses above these are those of signals: in a shell, and in PBS."""
Role = Literal["cause", "cascade", "wrapper", "teardown", "advice", "benign"]
"""The role of a matching text in a failure.

cause: it can be the root cause. cascade: it follows from the failure of another rank or process.
wrapper: it only reports that something inside failed. teardown: it happens while a process that
has already failed shuts down. advice: a hint or boilerplate printed next to an error. benign: it
looks like an error but is harmless.
"""


@dataclass(frozen=True, slots=True)
class SignatureExample:
    """A log that a signature must match, with the fields that its pattern must capture."""

    log: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signature:
    """A known kind of failure, from its file.

    Attributes:
        name: ``family/name``, from the path of the file.
        title: a short description.
        pattern: searched in the text of an event (``re`` syntax, multi-line mode).
        anchors: literal texts, at least one of which is in every event that the pattern matches;
            the scan searches for them.
        meaning: what happened, in a sentence or two.
        role: see `Role`.
        within: if given, must also match in the event's whole block, including its frames.
        condition: if given, the function of `CONDITIONS` that must hold for the text, which compares its numbers.
        category, also, root_cause, phase, retry: terms of the taxonomy; empty if undetermined.
        general: the text can state any reason, which then decides the category instead.
        retry_reason: why a retry helps or does not.
        fixes: concrete actions, most likely first; ``{name}`` refers to a group of the pattern or one
            of `GIVEN`, and a fix with a missing value is omitted.
        status: the exit status (128 + n for signal n) of a process whose exit the text reports
            without a reason; 0 if it does not. A pattern may capture it instead, as a group
            ``exitcode`` or ``signal``, and the process as ``rank``.
        priority: decides between signatures that match the same event; the highest wins.
    """

    name: str
    title: str
    pattern: str
    anchors: tuple[str, ...]
    meaning: str
    role: Role = "cause"
    within: str = ""
    condition: str = ""
    category: str = ""
    general: bool = False
    also: tuple[str, ...] = ()
    root_cause: str = ""
    phase: str = ""
    retry: str = ""
    retry_reason: str = ""
    fixes: tuple[str, ...] = ()
    status: int = 0
    priority: int = 50
    examples: tuple[SignatureExample, ...] = ()
    counter_examples: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The family of the signature: the directory of its file."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Match:
    """A signature found in an event, with the captured values of its pattern."""

    signature: Signature
    captured: Mapping[str, str]
    start: int
    end: int

    @property
    def status(self) -> int | None:
        """The exit status of the process that the text reports, in the shell's form."""
        if self.signature.status:
            return self.signature.status
        if (code := self.captured.get("exitcode", "")).lstrip("-").isdigit() and int(code):
            value = int(code)
            if value > PBS_SIGNALS:
                return SIGNALS + value - PBS_SIGNALS
            return value if value > 0 else SIGNALS - value
        return _of_signal(self.captured.get("signal", ""))

    @property
    def rank(self) -> int | None:
        """The rank that the text names."""
        rank = self.captured.get("rank", "")
        return int(rank) if rank.isdigit() else None

    def fixes(self, known: Mapping[str, str]) -> tuple[str, ...]:
        """The signature's fixes whose placeholders are all known, without those that only repeat one of them.

        Args:
            known: values for `GIVEN` placeholders.
        """
        values = {**known, **self.captured}
        fixes = [fix for fix in self.signature.fixes if _placeholders(fix) <= values.keys()]
        filled = list(filter(_placeholders, fixes))
        return tuple(
            _fill(fix, values)
            for fix in fixes
            if fix in filled or not any(_repeats(fix, other) for other in filled)
        )


_SAME_WORDS = 0.8
"""Share of its words from which on a general fix says no more than one with values."""


def _repeats(general: str, other: str) -> bool:
    words = set(_WORD.findall(general.lower()))
    return len(words & set(_WORD.findall(other.lower()))) >= _SAME_WORDS * len(words)


def _of_signal(text: str) -> int | None:
    if text.isdigit():
        return SIGNALS + int(text)
    found = next((s for s in LinuxSignal if s.name in (text, f"SIG{text}")), None)
    return SIGNALS + found if found else None


GIVEN = frozenset({"code"})
"""Placeholders of fixes that no pattern captures: ``code`` is the source line of the innermost frame
of the user's own code, if the log contains it.
"""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"\w{4,}")


def _placeholders(text: str) -> set[str]:
    return set(_PLACEHOLDER.findall(text))


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


class Catalog:
    """A set of signatures that can be matched.

    Args:
        signatures: names must be unique.

    Raises:
        CatalogError: two signatures have the same name.
    """

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self.signatures = tuple(sorted(signatures, key=lambda s: (-s.priority, s.name)))
        names = Counter(signature.name for signature in self.signatures)
        if twice := [name for name, count in names.items() if count > 1]:
            raise CatalogError(f"signature {twice[0]!r} is defined twice")

    def __iter__(self) -> Iterator[Signature]:
        return iter(self.signatures)

    def __len__(self) -> int:
        return len(self.signatures)

    def __or__(self, other: Catalog) -> Catalog:
        """The union of both catalogues; a signature of ``other`` replaces one of the same name."""
        if not len(other):
            return self
        merged = {s.name: s for s in self.signatures} | {s.name: s for s in other.signatures}
        return Catalog(merged.values())

    @cached_property
    def anchors(self) -> Mapping[str, tuple[int, ...]]:
        """All anchors with the numbers of their signatures."""
        found: dict[str, list[int]] = {}
        for number, signature in enumerate(self.signatures):
            for anchor in signature.anchors:
                found.setdefault(anchor, []).append(number)
        return {anchor: tuple(numbers) for anchor, numbers in found.items()}

    def matches(
        self, text: str, block: str, numbers: Iterable[int] | None = None
    ) -> Iterator[Match]:
        """The signatures that match an event, best first.

        Args:
            text: the event's own message.
            block: the event with its surroundings, including frames.
            numbers: signatures that can match (their anchors were found); all if None.
        """
        for number in range(len(self)) if numbers is None else sorted(numbers):
            signature = self.signatures[number]
            found = _compiled(signature.pattern).search(text)
            if found is None or (signature.condition and not CONDITIONS[signature.condition](text)):
                continue
            if not signature.within or _compiled(signature.within).search(block):
                captured = {k: v.strip() for k, v in found.groupdict().items() if v is not None}
                yield Match(signature, captured, found.start(), found.end())


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: most signatures are never used."""
    return re.compile(pattern, re.MULTILINE)


BUILTIN = Path(__file__).with_name("signatures")
"""The directory of the signatures in the package."""


EXAMPLES = "\n[[examples]]"
"""Start of the examples in a signature file, which come last."""


@cache
def builtin() -> Catalog:
    """The signatures of the package, without their examples, which are half of every file
    and are not used for a diagnosis.

    Parsing the files takes most of the time of a short diagnosis, so the result is stored under a hash
    of their contents (`epochzero.compiled`).
    """
    files = dict(_files(BUILTIN))
    # Including this module, because it determines how the files are parsed.
    key = compiled.key_of((Path(__file__).read_bytes(), *chain.from_iterable(files.items())))
    if (item := compiled.load(key)) is not None:
        return Catalog(_from_rows(json.loads(item)))
    catalog = Catalog(
        _parsed(os.fsdecode(name), content, BUILTIN, examples=False)
        for name, content in files.items()
    )
    compiled.store(key, json.dumps(_to_rows(catalog)).encode())
    return catalog


def _files(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """The name and content of every signature file; without `pathlib`, which takes as long as reading."""
    root = os.fsencode(folder)
    for directory, directories, names in os.walk(root):
        directories.sort()
        for name in sorted(names):
            if name.endswith(b".toml"):
                path = os.path.join(directory, name)
                with open(path, "rb", buffering=0) as stream:
                    yield path[len(root) + 1 : -len(b".toml")], stream.read()


_COMPILED = tuple(f.name for f in fields(Signature) if f.name != "examples")
"""The stored fields of a signature, in the order of its parameters."""


def _to_rows(signatures: Iterable[Signature]) -> list[list[Any]]:
    return [[getattr(signature, name) for name in _COMPILED] for signature in signatures]


def _from_rows(rows: Iterable[list[Any]]) -> Iterator[Signature]:
    for row in rows:
        values: Iterator[Any] = (tuple(v) if isinstance(v, list) else v for v in row)
        yield Signature(**dict(zip(_COMPILED, values, strict=True)))


def load_folder(folder: Path, *, examples: bool = True) -> Iterator[Signature]:
    """The signatures in a directory and its subdirectories, sorted by name.

    Args:
        folder: directory of the files.
        examples: read the examples too, and validate every field and pattern.

    Raises:
        CatalogError: the directory or one of its files is not valid.
    """
    if not folder.is_dir():
        raise CatalogError(f"{folder}: no such directory of signatures")
    for path in sorted(folder.rglob("*.toml")):
        yield load_file(path, folder, examples=examples)


def load_file(path: Path, folder: Path, *, examples: bool = True) -> Signature:
    """The signature in one file, named by its path below ``folder``.

    Raises:
        CatalogError: the file is not valid.
    """
    name = path.relative_to(folder).with_suffix("").as_posix()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"{path} cannot be read: {error}") from error
    return _parsed(name, content, folder, examples=examples)


def _parsed(name: str, content: bytes, folder: Path, *, examples: bool) -> Signature:
    """Parses a signature file; errors contain its name."""
    path = folder / f"{name}.toml"
    try:
        text = content.decode("utf-8").replace("\r\n", "\n")
        raw = tomllib.loads(text if examples else text.partition(EXAMPLES)[0])
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"{path} cannot be read: {error}") from error
    try:
        if not examples:
            return _signature(name, {**raw, "examples": []})
        _check_form(raw)
        _check_words(raw)
        signature = _signature(name, raw)
        _check_patterns(signature)
        return signature
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


_FIELDS = {f.name for f in fields(Signature)} - {"name"}
_REQUIRED = ("title", "pattern", "anchors", "meaning", "examples")
_TEXTS = (
    "title",
    "pattern",
    "meaning",
    "role",
    "within",
    "condition",
    "category",
    "root_cause",
    "phase",
    "retry",
    "retry_reason",
)
_LISTS = ("anchors", "also", "fixes", "counter_examples")


def _signature(name: str, raw: dict[str, Any]) -> Signature:
    examples = tuple(_example(example) for example in raw["examples"])
    values: dict[str, Any] = {
        key: tuple(value) if key in _LISTS else value for key, value in raw.items()
    }
    values["examples"] = examples
    return Signature(name=name, **values)


def _check_form(raw: dict[str, Any]) -> None:
    if unknown := raw.keys() - _FIELDS:
        raise CatalogError(
            f"unknown field {min(unknown)!r}; valid fields are {', '.join(sorted(_FIELDS))}"
        )
    for key in _REQUIRED:
        if not raw.get(key):
            raise CatalogError(f"field {key!r} is missing or empty")
    for key in _TEXTS:
        if not isinstance(raw.get(key, ""), str):
            raise CatalogError(f"field {key!r} must be a string")
    for key in _LISTS:
        value = raw.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise CatalogError(f"field {key!r} must be a list of strings")
    if not isinstance(raw.get("general", False), bool):
        raise CatalogError("field 'general' must be true or false")
    for key in ("priority", "status"):
        if not isinstance(raw.get(key, 0), int):
            raise CatalogError(f"field {key!r} must be an integer")


def _check_words(raw: dict[str, Any]) -> None:
    if raw.get("role", "cause") not in get_args(Role):
        raise CatalogError(f"role {raw['role']!r} is not one of {', '.join(get_args(Role))}")
    vocabularies = {
        "category": taxonomy.categories(),
        "root_cause": taxonomy.root_causes(),
        "phase": taxonomy.phases(),
        "retry": taxonomy.retries(),
    }
    for key, vocabulary in vocabularies.items():
        if (word := raw.get(key, "")) and word not in vocabulary:
            raise CatalogError(f"{key} {word!r} is not in the taxonomy")
    for word in raw.get("also", []):
        if word not in taxonomy.categories():
            raise CatalogError(f"also {word!r} is not in the taxonomy")
    if (name := raw.get("condition", "")) and name not in CONDITIONS:
        raise CatalogError(f"condition {name!r} is not one of {', '.join(CONDITIONS)}")
    if raw.get("role", "cause") == "cause" and not raw.get("category"):
        raise CatalogError("cause requires category")


def _example(raw: object) -> SignatureExample:
    match raw:
        case {"log": str(log), **rest} if rest.keys() <= {"fields"}:
            captured = rest.get("fields", {})
            if isinstance(captured, dict):
                return SignatureExample(log, captured)
    raise CatalogError("an example must be a table with 'log' (a string) and, optionally, 'fields'")


def _check_patterns(signature: Signature) -> None:
    groups: set[str] = set()
    for key in ("pattern", "within"):
        try:
            groups |= re.compile(getattr(signature, key), re.MULTILINE).groupindex.keys()
        except re.error as error:
            raise CatalogError(f"{key} is not a regular expression: {error}") from error
    for fix in signature.fixes:
        if missing := _placeholders(fix) - groups - GIVEN:
            raise CatalogError(
                f"a fix names {{{min(missing)}}}, but the pattern does not capture it"
            )
    for anchor in signature.anchors:
        if len(anchor.strip()) < 3:
            raise CatalogError(f"anchor {anchor!r} is too short to search for")
