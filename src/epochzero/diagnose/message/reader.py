"""Reads what a message says did not hold: a relation, its subject and its operands.

Signatures know messages; the reader knows the language in which messages are written. It finds the
predicate of the first clause that has one ("must match", "not found", "out of range", "expected ...
but got"), the noun next to it, and the operands that the phrase names. The grammar is data
(``grammar.toml``) and the same for Python, C++ checks, status codes and the JVM.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

MESSAGE_CHARS = 1200
"""So much of a message is read; what follows is a native stack or the input that was refused."""
MOST_CLAUSES = 12


@dataclass(frozen=True, slots=True)
class MessageReading:
    """What a message says.

    Attributes:
        relation: what did not hold: missing, differs, out_of_range, ...; empty where nothing is read.
        subject: of what: shape, dtype, device, key, file, ...; empty where no noun is known.
        wanted, found: the operands, where the phrase names both.
        wanted_kind, found_kind: the subjects that the operands are about.
        asserted: the relation stands in an assertion, not in words.
    """

    relation: str = ""
    subject: str = ""
    wanted: str = ""
    found: str = ""
    wanted_kind: str = ""
    found_kind: str = ""
    asserted: bool = False


NOTHING_READ = MessageReading()


@dataclass(frozen=True, slots=True)
class _Relation:
    name: str
    phrase: re.Pattern[str]
    side: str
    subject: str


_ASSERTION = re.compile(
    r"^(?:assert\b|(?:self\.)?assert\w*\(|.*\bCheck failed: |.*\bassertion failed\b)"
)
_CLAUSE = re.compile(r"(?<=[a-z\])\"'`])[.;!] +(?=[A-Z])|\n+")
_PATH = re.compile(r"(^|[\s'\"`(=])(?:[A-Za-z]:)?[~.\w-]*(?:[/\\][^\s'\"`,:;)]+){2,}")
"""What a path spells is no part of the sentence."""
_LOCATION = re.compile(
    r"(?:\bat )?\S*[\w)]\.(?:c|cc|cpp|cu|cuh|cxx|h|hpp|inl|mm|pyx)\W?(?::\d+|\(\d+\)|, line \d+)[:\]]?"
)
"""The place in a library's own source code that native checks print with what did not hold."""
_EDGE = re.compile(r"^[\W_]+|[\W_]+$")


@lru_cache(maxsize=4096)
def read_message(message: str, code: str = "") -> MessageReading:
    """What a message says did not hold.

    Args:
        message: of an exception without its class, or a line.
        code: the source line that raised it: a bare assertion says only there what it is about.
    """
    weak = NOTHING_READ
    for clause in _clauses(message):
        found = _read_clause(clause)
        if found.relation not in ("", "failed"):
            return found
        weak = weak if weak.relation else found
    if code and _ASSERTION.match(code):
        return _read_assertion(code)
    return weak


def category_of(reading: MessageReading) -> str:
    """The category that a reading decides (``decisions.toml``); empty where it decides none."""
    decided = _decisions().get(reading.relation, {})
    return decided.get(reading.subject) or decided.get("any", "")


def subjects_in(text: str) -> Iterator[tuple[int, int, str]]:
    """The nouns of a text: where they begin, where they end, and the subject that they name."""
    for match in _nouns().finditer(text):
        yield match.start(), match.end(), (match.lastgroup or "").replace("_", " ")


def _clauses(message: str) -> list[str]:
    words = _LOCATION.sub("", message[:MESSAGE_CHARS])
    parts = _CLAUSE.split(_PATH.sub(r"\1/path", words))
    return [part for part in parts if part.strip()][:MOST_CLAUSES]


def _read_clause(clause: str) -> MessageReading:
    for relation in _relations():
        if match := relation.phrase.search(clause):
            return _reading(relation, match, clause)
    return NOTHING_READ


def _read_assertion(code: str) -> MessageReading:
    asserted = code.partition("assert")[2]
    read = _read_clause(asserted)
    # Of `outputs.is_cuda`, the property is what is asserted.
    named = [name for _, _, name in subjects_in(asserted)]
    property_ = next((name for name in named if name not in _VALUES), "")
    return MessageReading(
        read.relation or "differs",
        read.subject or property_,
        read.wanted,
        read.found,
        asserted=True,
    )


def _reading(relation: _Relation, match: re.Match[str], clause: str) -> MessageReading:
    groups = {k.rstrip("0123456789"): v for k, v in match.groupdict().items() if v is not None}
    wanted = _EDGE.sub("", groups.get("wanted", ""))
    found = _EDGE.sub("", groups.get("found", ""))
    return MessageReading(
        relation.name,
        relation.subject or _subject(clause, match.start(), match.end(), relation),
        wanted,
        found,
        _first_subject(wanted),
        _first_subject(found),
    )


_GENERAL = frozenset({"argument", "value"})
_VALUES = _GENERAL | {"data", "target"}
"""What differs is a property; of these nouns, it is a property of theirs."""


def _subject(clause: str, start: int, end: int, relation: _Relation) -> str:
    """The noun nearest to the phrase; nouns on the side where it is expected stand nearer."""
    best, name = 10_000, ""
    for begin, stop, subject in subjects_in(clause):
        if stop <= start:
            distance = start - stop + (40 if relation.side == "after" else 0)
        elif begin >= end:
            distance = begin - end + (40 if relation.side == "before" else 0)
        else:
            distance = 0
        if relation.name == "differs" and subject in _GENERAL:
            distance += 40
        if distance < best:
            best, name = distance, subject
    return name


def _first_subject(text: str) -> str:
    return next((name for _, _, name in subjects_in(text)), "")


def _data(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def _grammar() -> dict[str, list[dict[str, object]]]:
    return _data("grammar.toml")


@cache
def _decisions() -> dict[str, dict[str, str]]:
    return _data("decisions.toml")


@cache
def _relations() -> tuple[_Relation, ...]:
    return tuple(
        _Relation(
            str(raw["name"]),
            re.compile(_alternation(raw["phrase"])),
            str(raw.get("side", "either")),
            str(raw.get("subject", "")),
        )
        for raw in _grammar()["relation"]
    )


def _alternation(phrases: object) -> str:
    """One pattern of several; the operands of each have names of their own."""
    assert isinstance(phrases, list)
    named = (
        re.sub(r"\(\?P<(wanted|found)>", rf"(?P<\g<1>{n}>", phrase)
        for n, phrase in enumerate(phrases)
    )
    return "|".join(named)


@cache
def _nouns() -> re.Pattern[str]:
    """Any noun of the grammar; the earlier subject wins where two fit."""
    parts = []
    for raw in _grammar()["subject"]:
        name = str(raw["name"]).replace(" ", "_")
        phrase = str(raw["phrase"])
        if phrase.startswith("(?x)"):
            phrase = f"(?x:{phrase[4:]}\n)"
        parts.append(f"(?P<{name}>{phrase})")
    return re.compile("|".join(parts))
