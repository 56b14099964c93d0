"""Questions for annotators, as data: each with its choices and definitions.

A scheme is a TOML file (``schemes/failures.toml``). The choices of a question come from a vocabulary of the taxonomy,
from a list, or from both; a question ``within`` another offers only the choices that are ``of`` the answer to that
one. A copy of the scheme is stored with the labels (``FILE.labels/scheme.json``).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from epochzero import taxonomy
from epochzero.errors import InputError

SCHEMES = ("failures", "bugs")
COMMANDS = {
    "u": "undo",
    "s": "skip",
    "n": "note",
    "?": "definitions",
    "/": "whole record",
    "q": "quit",
}
KEYS = "".join(text for text in "abcdefghijklmnopqrstuvwxyz" if text not in COMMANDS)
"""A letter for each choice of a question, in order."""

_VOCABULARIES = {
    "categories": taxonomy.categories,
    "dimensions": taxonomy.dimensions,
    "faults": taxonomy.faults,
    "phases": taxonomy.phases,
    "retries": taxonomy.retries,
    "root_causes": taxonomy.root_causes,
    "symptoms": taxonomy.symptoms,
}

Answers = Mapping[str, str]
"""Names of chosen answers by name of the question."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to a question.

    Attributes:
        name: as written in labels.
        title: for people.
        definition: what belongs to it.
        example: may be empty.
        of: the answer of the outer question to which this choice belongs; empty if it is always offered.
        value: as written in an export.
    """

    name: str
    title: str
    definition: str
    example: str = ""
    of: str = ""
    value: str | bool | int = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a record.

    Attributes:
        name: as written in labels.
        title: the question itself.
        choices: all of them.
        within: earlier question whose answer restricts the choices; may be empty.
        unless: the question is skipped if an earlier question, by name, has one of these answers.
    """

    name: str
    title: str
    choices: tuple[Choice, ...]
    within: str
    unless: Mapping[str, tuple[str, ...]]

    def choices_after(self, answers: Answers) -> tuple[Choice, ...]:
        """Return the choices that earlier answers allow; none if the question is skipped."""
        if any(answers.get(name) in words for name, words in self.unless.items()):
            return ()
        if not self.within:
            return self.choices
        return tuple(choice for choice in self.choices if choice.of == answers.get(self.within))

    def choice(self, name: str) -> Choice:
        """Return the choice of that name; StopIteration if there is none."""
        return next(choice for choice in self.choices if choice.name == name)


@dataclass(frozen=True)
class Scheme:
    """The questions of a labeling, in order.

    Attributes:
        title: what is labeled.
        rule: general rule for all decisions.
        source: of the definitions.
        begin: which end of a text is shown first, ``start`` or ``end``.
        questions: in order.
    """

    title: str
    rule: str
    source: str
    begin: str
    questions: tuple[Question, ...]

    @cached_property
    def version(self) -> str:
        """Digest of all definitions; every changed word changes it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """Return everything as JSON for `scheme_of`."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, sort_keys=True)

    def walk(self, answers: Answers) -> tuple[dict[str, str], Question | None]:
        """Return the answers that count, and the next question; None when all are answered.

        If only one choice remains, it counts as given. An answer to a skipped question, or one that is no longer a
        choice, does not count.
        """
        found: dict[str, str] = {}
        for question in self.questions:
            choices = [choice.name for choice in question.choices_after(found)]
            if not choices:
                continue
            answer = choices[0] if len(choices) == 1 else answers.get(question.name)
            if answer not in choices:
                return found, question
            found[question.name] = answer
        return found, None


def load_scheme(name: str) -> Scheme:
    """Load a scheme of the package by name, or the user's own from a TOML file.

    Raises:
        InputError: it does not exist or is invalid; the message states where.
    """
    if name in SCHEMES:
        text = files(__package__).joinpath(f"schemes/{name}.toml").read_text(encoding="utf-8")
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise InputError(
                f"{name} cannot be read: {error}; a scheme is {', '.join(SCHEMES)} or a TOML file"
            ) from error
    try:
        return scheme_of(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: invalid TOML: {error}") from error


def scheme_of(data: Mapping[str, Any], name: str) -> Scheme:
    """Parse a scheme.

    Args:
        data: of a TOML or JSON file.
        name: of the file, for messages.

    Raises:
        InputError: a part is missing or invalid.
    """
    try:
        questions = tuple(_question(value) for value in data["questions"])
        scheme = Scheme(str(data["title"]), str(data.get("rule", "")), str(data.get("source", "")),
                        str(data.get("begin", "start")), questions)  # fmt: skip
        _check(scheme)
    except KeyError as error:
        raise InputError(f"{name}: {error} is missing in the scheme") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{name} is not a label scheme: {error}") from error
    return scheme


def _question(data: Mapping[str, Any]) -> Question:
    within = str(data.get("within", ""))
    choices = {c.name: c for c in _of_vocabulary(data.get("vocabulary", ""), within)}
    for value in data.get("choices", ()):
        choice = Choice(str(value["name"]), str(value["title"]), str(value["definition"]), str(value.get("example", "")),
                        str(value.get("of", "")), value.get("value", ""))  # fmt: skip
        choices[choice.name] = choice
    unless = {str(name): tuple(words) for name, words in data.get("unless", {}).items()}
    return Question(str(data["name"]), str(data["title"]), tuple(choices.values()), within, unless)


def _of_vocabulary(name: str, within: str) -> list[Choice]:
    if not name:
        return []
    if name not in _VOCABULARIES:
        raise ValueError(f"unknown vocabulary {name!r}; choose one of {', '.join(_VOCABULARIES)}")
    return [
        Choice(t.name, t.title, t.definition, t.example, t.dimension if within else "")
        for t in _VOCABULARIES[name]().values()
    ]


def _check(scheme: Scheme) -> None:
    if not scheme.questions:
        raise ValueError("it has no questions")
    if scheme.begin not in ("start", "end"):
        raise ValueError(f"begin is {scheme.begin!r}; it must be start or end")
    before: dict[str, Question] = {}
    for question in scheme.questions:
        where = f"question {question.name!r}"
        if question.name in before:
            raise ValueError(f"{where} occurs twice")
        for earlier in (*question.unless, *filter(None, [question.within])):
            if earlier not in before:
                raise ValueError(
                    f"{where} depends on {earlier!r}, which is not an earlier question"
                )
        outer = before[question.within].choices if question.within else ()
        for within in [choice.name for choice in outer] or [""]:
            offered = question.choices_after({question.within: within} if within else {})
            if len(offered) > len(KEYS):
                raise ValueError(f"{where} has more than {len(KEYS)} choices at a time")
        if len(question.choices) < 2:
            raise ValueError(f"{where} has fewer than 2 choices")
        before[question.name] = question
