"""Files to units, names and words, by tree-sitter.

One query for each language (``grammars``) finds what matters; everything else is arrays over the
bytes: what each byte belongs to is painted, and a word is what its first byte is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import compress
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from epochzero.code.imports import imports_of
from epochzero.code.languages import LANGUAGES, language_of, refined
from epochzero.code.parsed import FIELDS, BagTable, Import, Parsed
from epochzero.code.units import Found, find_units
from epochzero.code.words import (
    IDENTIFIER,
    KEYWORDS,
    hashes,
    name_hashes,
    trigrams,
    word_stream,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Span = tuple[int, int]


CARD_CHARACTERS = 300
LARGE_BYTES, CHUNK_BYTES = 1 << 17, 1 << 16
LONGEST_S = 5.0
"""So much time of its processor a large file may take; more takes only what is not of the language
that its name tells."""
MOST_SIGNS, SIGNS_EACH, MOST_SIGNS_OF_LIST = 8000, 8, 50_000
"""Bare signs in one node: in all, for each part that is more than a sign, and even if there is one
for each sign, as in a list."""

CODE, COMMENT, STRING = 0, 1, 2
IMPORT, NAME, CARD = 1, 2, 4

_SPLIT = re.compile(f"({IDENTIFIER.pattern})")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"
_LICENSE = re.compile(rb"(?i)copyright|licen[cs]e|spdx")
_CALLED = re.compile(r"[~A-Za-z_$][\w$]*(?=\s*(?:<.*)?$)", re.DOTALL)
_CHECKS = {
    "c": re.compile(r"assert$|D?CHECK|[A-Z]+_(?:CHECK|ASSERT|ENFORCE)|ASSERT"),
    "go": re.compile(r"panic$"),
    "javascript": re.compile(r"assert$"),
}
_CHECKS_OF = {"cpp": "c", "cuda": "c", "typescript": "javascript", "tsx": "javascript"}


def parse(data: bytes, path: str) -> Parsed:
    """Takes a file apart.

    Any bytes are accepted: broken encodings are decoded with replacement, and what is no code
    becomes one text without units.

    Args:
        data: the file.
        path: tells the language, together with the first bytes; nothing else of it counts.
    """
    data = _utf8(data)
    language = refined(language_of(path), data)
    if language not in LANGUAGES:
        return _plain(language, data)
    text = _SourceText(data)
    captures = _captures(language, text.data)
    return _plain("text", data) if captures is None else _code(language, text, captures)


class Syntax(NamedTuple):
    """A file's syntax tree.

    Attributes:
        language: one of `LANGUAGES`.
        data: the file as valid UTF-8; the tree's offsets are into this.
        root: the outermost node.
    """

    language: str
    data: bytes
    root: Node


def syntax_of(data: bytes, path: str) -> Syntax | None:
    """The syntax tree of a file; None where it has no grammar or is not worth the time.

    Args:
        data: the file; any bytes are accepted.
        path: tells the language, together with the first bytes.
    """
    data = _utf8(data)
    language = refined(language_of(path), data)
    if language not in LANGUAGES:
        return None
    data = _SourceText(data).data
    root = _root(language, data)
    return None if root is None else Syntax(language, data, root)


def parse_as_text(data: bytes, path: str) -> Parsed:
    """What `parse` yields for a file that no parser accepts: its words, and no units."""
    data = _utf8(data)
    language = refined(language_of(path), data)
    return _plain("text" if language in LANGUAGES else language, data)


def _utf8(data: bytes) -> bytes:
    if data.startswith(_UTF16):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


class _SourceText:
    """A file's bytes as valid UTF-8, and its identifiers.

    Attributes:
        data: the bytes.
        tokens: the identifiers in order, those in comments and strings included.
        starts: the first byte of each.
        line_starts: the first byte of each line.
    """

    __slots__ = ("data", "line_starts", "starts", "tokens")

    def __init__(self, data: bytes) -> None:
        data = data.removeprefix(_UTF8_MARK)
        if b"\r" in data:
            data = _LONE_RETURN.sub(b"\n", data)
        text = data.decode("utf-8", "replace")
        if "\ufffd" in text:
            data = text.encode()
        pieces = _SPLIT.split(text)
        ends = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
        raw = np.frombuffer(data, dtype=np.uint8)
        self.data = data
        self.tokens: list[str] = pieces[1::2]
        self.starts: NDArray[np.int64] = ends[:-1:2]
        if len(text) != len(data):
            self.starts = ((raw & 0xC0) != 0x80).nonzero()[0][self.starts]
        self.line_starts: list[int] = [0, *((raw == ord("\n")).nonzero()[0] + 1).tolist()]

    @property
    def lines(self) -> int:
        """How many lines there are; the last may lack its end."""
        return len(self.line_starts) - (self.line_starts[-1] == len(self.data))


_NO_HASHES = name_hashes(())


def _plain(language: str, data: bytes) -> Parsed:
    """A file without units: its words, and its beginning as its card."""
    text = _SourceText(b"" if language == "binary" else data)
    stream, bounds = word_stream(text.tokens)
    card_end = _characters_end(text.data, 0, CARD_CHARACTERS)
    card = slice(0, int(bounds[np.searchsorted(text.starts, card_end)]))
    parts = {"whole": slice(None), "card": card}
    rows = [parts.get(name, slice(0, 0)) for name in FIELDS]
    table = BagTable.of(stream, rows)
    nowhere = np.zeros(0, dtype=np.int32)
    none = _NO_HASHES
    return Parsed(language, text.lines, (), (), (), nowhere, none, none, none, none, 0, table)


def _characters_end(data: bytes, begin: int, characters: int) -> int:
    """The byte behind so many characters."""
    start = data[begin : begin + 4 * characters].decode("utf-8", "ignore")[:characters]
    return begin + len(start.encode())


# -- Code --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Grammar:
    """The parser of a language and what to look for."""

    parser: Parser
    cursor: QueryCursor


@cache
def _grammar(language: str) -> _Grammar:
    package = "typescript" if language == "tsx" else language
    module = import_module(f"tree_sitter_{package}")
    pointer = getattr(module, f"language_{language}" if package == "typescript" else "language")
    grammar = Language(pointer())
    # CUDA's grammar extends that of C++ and names its nodes alike.
    written = "cpp" if language == "cuda" else package
    source = files("epochzero.code") / "grammars" / f"{written}.scm"
    query = Query(grammar, source.read_text(encoding="utf-8"))
    return _Grammar(Parser(grammar), QueryCursor(query))


def _captures(language: str, data: bytes) -> dict[str, list[Node]] | None:
    """The nodes that the language's query names; None for what is not worth the time."""
    root = _root(language, data)
    return None if root is None else _grammar(language).cursor.captures(root)


def _root(language: str, data: bytes) -> Node | None:
    """The outermost node of the tree; None for what is not worth the time."""
    grammar = _grammar(language)
    if len(data) < LARGE_BYTES:
        tree = grammar.parser.parse(data)
    else:
        until = thread_time() + LONGEST_S
        try:
            tree = grammar.parser.parse(
                lambda offset, _point: data[offset : offset + CHUNK_BYTES],
                progress_callback=lambda _offset, _in_error: thread_time() > until,
            )
        except ValueError:
            grammar.parser.reset()
            return None
    return None if _has_flat_node(tree.root_node) else tree.root_node


def _has_flat_node(root: Node) -> bool:
    """Whether one node holds very many bare signs or keywords side by side.

    A query takes the square of their number, and only what is no code at all looks like this.
    """
    waiting = [root]
    while waiting:
        node = waiting.pop()
        begin, end = node.byte_range
        if end - begin > MOST_SIGNS:
            named = node.named_child_count
            signs = node.child_count - named
            if signs > MOST_SIGNS_OF_LIST or signs > max(MOST_SIGNS, SIGNS_EACH * named):
                return True
            waiting += node.named_children
    return False


def _code(language: str, text: _SourceText, captures: Mapping[str, list[Node]]) -> Parsed:
    found = find_units(language, captures, text.data, text.line_starts)
    units = tuple([item.unit for item in found])
    spans = {name: sorted(node.byte_range for node in nodes) for name, nodes in captures.items()}
    kinds = _kinds(spans, len(text.data))[text.starts]
    marks = _marks(spans, found, text.data)[text.starts]
    tokens = _without_escapes(text, kinds)
    calls, checks = _calls(language, spans, found, text.data)
    in_code = compress(tokens, (kinds == CODE).tolist())
    return Parsed(
        language="typescript" if language == "tsx" else language,
        lines=text.lines,
        units=units,
        imports=_imports(language, spans, text.data),
        called=tuple([name for _, name in calls]),
        callers=np.array([unit for unit, _ in calls], dtype=np.int32),
        names=name_hashes(set(in_code) - KEYWORDS),
        defined=name_hashes({unit.name for unit in units}),
        classes=name_hashes({unit.name for unit in units if unit.kind == "class"}),
        phrases=_phrases(tokens, text.starts, kinds, spans),
        raises=len(spans.get("raise", ())) + checks,
        table=_bags(tokens, kinds, marks, found, text),
    )


def _kinds(spans: Mapping[str, list[Span]], size: int) -> NDArray[np.uint8]:
    """What each byte is: code, comment or string."""
    kinds = np.zeros(size, dtype=np.uint8)
    layers = [(*span, STRING) for span in spans.get("string", ())]
    if inside := spans.get("code"):
        # Strings hold code that holds strings: outer ones first.
        layers += [(*span, CODE) for span in inside]
        layers.sort(key=lambda layer: (layer[0], -layer[1]))
    for begin, end, kind in layers:
        kinds[begin:end] = kind
    for name in ("comment", "doc"):
        for begin, end in spans.get(name, ()):
            kinds[begin:end] = COMMENT
    return kinds


def _marks(
    spans: Mapping[str, list[Span]], found: Sequence[Found], data: bytes
) -> NDArray[np.uint8]:
    """Which bytes belong to an import, to a unit's name, to the card."""
    marks = np.zeros(len(data), dtype=np.uint8)
    for begin, end in (*spans.get("import", ()), *spans.get("require", ())):
        marks[begin:end] |= IMPORT
    for unit in found:
        marks[unit.name_begin : unit.name_end] |= NAME | CARD
    for begin, end in _introduction(spans, data):
        marks[begin:end] |= CARD
    return marks


def _introduction(spans: Mapping[str, list[Span]], data: bytes) -> list[Span]:
    """The first characters of the module's docstring, or else of its first comment.

    A licence is passed over where another comment follows it.
    """
    blocks: list[Span] = []
    end = 0
    for comment in spans.get("comment", ()):
        gap = data[end : comment[0]]
        if gap.strip():
            break
        if blocks and gap.count(b"\n") <= 1:
            blocks[-1] = (blocks[-1][0], comment[1])
        else:
            blocks.append(comment)
        end = comment[1]
    docs = [span for span in spans.get("doc", ())[:1] if not data[end : span[0]].strip()]
    telling = [block for block in blocks if not _LICENSE.search(data, *block)]
    return [
        (begin, min(end, _characters_end(data, begin, CARD_CHARACTERS)))
        for begin, end in (docs or telling or blocks)[:1]
    ]


_ESCAPES = frozenset("abfnrtv")


def _without_escapes(text: _SourceText, kinds: NDArray[np.uint8]) -> list[str]:
    """The identifiers; in strings without the letter of an escape sequence before them."""
    if b"\\" not in text.data:
        return text.tokens
    before = np.frombuffer(text.data, dtype=np.uint8)[text.starts - 1]
    tokens = text.tokens.copy()
    for place in ((before == ord("\\")) & (kinds == STRING)).nonzero()[0].tolist():
        if tokens[place][0] in _ESCAPES:
            tokens[place] = tokens[place][1:]
    return tokens


def _imports(language: str, spans: Mapping[str, list[Span]], data: bytes) -> tuple[Import, ...]:
    found: list[Import] = []
    for begin, end in (*spans.get("import", ()), *spans.get("require", ())):
        found += imports_of(language, data[begin:end].decode("utf-8", "replace"))
    return tuple(found)


def _calls(
    language: str, spans: Mapping[str, list[Span]], found: Sequence[Found], data: bytes
) -> tuple[list[tuple[int, str]], int]:
    """The calls, each name once for each unit, and how many of all calls are checks."""
    called = spans.get("call", ())
    if not called:
        return [], 0
    owners = np.full(len(data), -1, dtype=np.int32)
    for number, unit in enumerate(found):
        owners[unit.begin : unit.end] = number
    inside = owners[[begin for begin, _ in called]].tolist()
    names = [_last_name(data[begin:end].decode("utf-8", "replace")) for begin, end in called]
    check = _CHECKS.get(_CHECKS_OF.get(language, language))
    checks = sum(1 for name in names if check.match(name)) if check else 0
    pairs = dict.fromkeys(zip(inside, names, strict=True))
    return [pair for pair in pairs if pair[1]], checks


def _last_name(callee: str) -> str:
    if callee.isidentifier():
        return callee
    found = _CALLED.search(callee.rpartition("::")[2].rpartition(".")[2])
    return found[0] if found else ""


def _phrases(
    tokens: Sequence[str],
    starts: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    spans: Mapping[str, list[Span]],
) -> NDArray[np.uint32]:
    """Trigrams of the words in strings; string literals side by side are one."""
    chosen = [place for place in (kinds == STRING).nonzero()[0].tolist() if len(tokens[place]) > 1]
    if len(chosen) < 3:
        return _NO_HASHES
    literals = [begin for begin, _ in spans["string"]]
    group = np.arange(len(literals), dtype=np.int32)
    for begin, end in spans.get("literal", ()):
        first = bisect_left(literals, begin)
        group[first : bisect_left(literals, end)] = first
    place = np.searchsorted(literals, starts[chosen], side="right") - 1
    return trigrams(hashes(tokens[n].lower() for n in chosen), group[place])


def _bags(
    tokens: Sequence[str],
    kinds: NDArray[np.uint8],
    marks: NDArray[np.uint8],
    found: Sequence[Found],
    text: _SourceText,
) -> BagTable:
    stream, bounds = word_stream(tokens)
    lengths = np.diff(bounds)
    kinds, marks = np.repeat(kinds, lengths), np.repeat(marks, lengths)
    rows: list[NDArray[np.int64] | slice] = [slice(None)]
    for mask in (
        kinds == CODE,
        marks & NAME,
        kinds == COMMENT,
        kinds == STRING,
        marks & IMPORT,
        marks & CARD,
    ):
        rows.append(mask.nonzero()[0])
    line_starts = [*text.line_starts, len(text.data)]
    edges = [line_starts[line] for item in found for line in (item.unit.start - 1, item.unit.end)]
    places = bounds[np.searchsorted(text.starts, edges)].tolist() if found else []
    rows += map(slice, places[::2], places[1::2])
    return BagTable.of(stream, rows)
