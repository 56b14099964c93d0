"""Full-text search over failures, and the search language: ``KeyError user:ann since:7d``.

The words of a failure are its title, category, messages and frames. Both databases index the same words: SQLite with
FTS5, PostgreSQL as `tsvector` without language rules. Parts of compound names are words too, so that ``nccl`` finds
``ProcessGroupNCCL``. A word of a search matches every word that starts with it.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Boolean, ColumnElement, and_, literal, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from epochzero.errors import InputError
from epochzero.store.schema import FailureText, KnownFailure, KnownFailureNote

FILTERS = tuple(
    """
    user node category partition image target state name owner is since until
    """.split()
)
"""The filters of the search language."""
_MOST_WORDS = 400
_LONGEST_WORD = 60
_MOST_NOTED = 500
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TERM = re.compile(r'(?:(\w+):)?(?:"([^"]*)"|(\S+))')
_UNITS = {"h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed search: words, and the values of filters."""

    text: str
    filters: Mapping[str, str]


def parse_search(text: str) -> SearchQuery:
    """Parses a search; what is not a known filter is text."""
    words: list[str] = []
    filters: dict[str, str] = {}
    for term in _TERM.finditer(text):
        name, value = term[1], term[2] if term[2] is not None else term[3]
        if name in FILTERS and value:
            # Pages show a category by its title.
            filters[name] = value.lower().replace(" ", "_") if name == "category" else value
        else:
            words.append(f"{name}:{value}" if name else value)
    return SearchQuery(" ".join(words), filters)


def time_of(text: str, *, now: float | None = None) -> float:
    """The time that a filter names: ``12h``, ``7d``, ``2w`` ago, or the start of ``2026-05-01`` in UTC.

    Raises:
        InputError: neither a duration nor a date.
    """
    if found := re.fullmatch(r"(\d{1,5})([hdw])", text):
        return (time.time() if now is None else now) - int(found[1]) * _UNITS[found[2]]
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise InputError(f"{text!r} is not a time; write 12h, 7d, 2w or 2026-05-01") from error


def end_of(text: str) -> float:
    """The end of a time that a filter names: of the day of a date.

    Raises:
        InputError: neither a duration nor a date.
    """
    return time_of(text) + (86_400.0 if "-" in text else 0.0)


def words_of(diagnosis: Mapping[str, Any]) -> str:
    """The searchable words of a diagnosis, each once."""
    found: dict[str, None] = {}
    for text in _texts(diagnosis):
        for word in _WORD.findall(text[:4000]):
            for part in (word, *_PART.findall(word)):
                found.setdefault(part.lower()[:_LONGEST_WORD])
        if len(found) > _MOST_WORDS:
            break
    return " ".join(found)


def _texts(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    for name in ("title", "category", "signature", "meaning"):
        yield str(diagnosis.get(name) or "")
    exception, root = diagnosis.get("exception") or {}, diagnosis.get("root") or {}
    yield from (str(exception.get("type") or ""), str(exception.get("message") or ""))
    yield str(root.get("text") or "")
    for frame in (diagnosis.get("user_frame") or {}, *(diagnosis.get("stack") or ())[-10:]):
        yield f"{frame.get('file') or ''} {frame.get('function') or ''} {frame.get('code') or ''}"
    for value in (diagnosis.get("cascade") or ())[:5]:
        yield f"{value.get('title') or ''} {value.get('text') or ''}"


def searched_words(text: str) -> Sequence[str]:
    """The words of a search; a part of a compound name is a word of its own."""
    return [word.lower() for word in _WORD.findall(text)][:20]


def digest_of(fingerprint: str, words: str) -> str:
    """Identifies the words of a failure within a team."""
    text = f"{fingerprint}\n{words}".encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


class _HasWords(FunctionElement[bool]):
    """Condition that a text contains words; its clauses: ID, words, query for SQLite, query for PostgreSQL."""

    type = Boolean()
    inherit_cache = True


@compiles(_HasWords, "sqlite")
def _has_words_sqlite(element: _HasWords, compiler: SQLCompiler, **values: Any) -> str:
    identity, _, wanted, _ = (compiler.process(clause, **values) for clause in element.clauses)
    return f"{identity} IN (SELECT rowid FROM failure_search WHERE failure_search MATCH {wanted})"


@compiles(_HasWords, "postgresql")
def _has_words_postgresql(element: _HasWords, compiler: SQLCompiler, **values: Any) -> str:
    _, words, _, wanted = (compiler.process(clause, **values) for clause in element.clauses)
    return f"to_tsvector('simple'::regconfig, {words}) @@ to_tsquery('simple', {wanted})"


def matching_texts(words: Sequence[str]) -> ColumnElement[bool]:
    """Condition that a `FailureText` contains all words."""
    return _HasWords(
        FailureText.id,
        FailureText.words,
        literal(" ".join(f'"{word}"*' for word in words)),
        literal(" & ".join(f"'{word}':*" for word in words)),
    )


def matching_fingerprints(team: str, words: Sequence[str]) -> ColumnElement[bool]:
    """Condition that the failures, notes or resolution of a `KnownFailure` contain all words."""
    of_texts = select(FailureText.fingerprint).where(
        FailureText.team == team, FailureText.fingerprint != "", matching_texts(words)
    )
    return or_(KnownFailure.fingerprint.in_(of_texts), noted(team, words))


def noted(team: str, words: Sequence[str]) -> ColumnElement[bool]:
    """Condition that the notes or the resolution of a `KnownFailure` contain all words."""
    each = [
        or_(
            KnownFailure.resolution.icontains(word, autoescape=True),
            KnownFailure.fingerprint.in_(
                select(KnownFailureNote.fingerprint)
                .where(KnownFailureNote.team == team)
                .where(KnownFailureNote.text.icontains(word, autoescape=True))
                .limit(_MOST_NOTED)
            ),
        )
        for word in words
    ]
    return and_(*each)
