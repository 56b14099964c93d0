"""Classes, functions and methods of a syntax tree."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochzero.code.parsed import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tree_sitter import Node


_TEMPLATE = re.compile(r"<[^<>]*>")
_RECEIVER = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\])?\s*\)$")
_DEEPEST_DECLARATOR = 12


@dataclass(frozen=True, slots=True)
class Found:
    """A unit and where it is.

    Attributes:
        unit: as the user sees it.
        begin, end: its bytes, without decorators and the comment above it.
        name_begin, name_end: the bytes of its name.
    """

    unit: Unit
    begin: int
    end: int
    name_begin: int
    name_end: int


def find_units(
    language: str, captures: Mapping[str, list[Node]], data: bytes, line_starts: Sequence[int]
) -> tuple[Found, ...]:
    """The units that a query captured, in the order of their first byte, outer ones first."""
    nodes = [
        (*node.byte_range, is_class, node)
        for capture, is_class in (("class", True), ("function", False))
        for node in captures.get(capture, ())
    ]
    if not nodes:
        return ()
    nodes.sort(key=lambda item: (item[0], -item[1]))
    wrapped = {node.start_byte: _outside(node) for node in captures.get("wrapped", ())}
    comments = _own_line_comments(captures, data, line_starts)
    found: list[Found] = []
    around: list[tuple[int, str, bool]] = []  # units still open: end, qualified name, class?
    for begin, end, is_class, node in nodes:
        while around and around[-1][0] <= begin:
            around.pop()
        span = _name_span(node)
        if span is None:
            continue
        written = data[slice(*span)].decode("utf-8", "replace")
        parts = _parts(language, node, written, data)
        in_class = bool(around) and around[-1][2]
        method = in_class or len(parts) > 1
        kind = "class" if is_class else "method" if method else "function"
        qualified = ".".join((around[-1][1], *parts) if around else parts)
        first = bisect_right(line_starts, wrapped.get(begin, begin))
        last = bisect_right(line_starts, max(begin, end - 1))
        if language == "python":
            last = _without_comments_after(last, comments, data, line_starts)
        else:
            while first - 1 in comments:
                first = comments[first - 1]
        found.append(Found(Unit(kind, parts[-1], qualified, first, last), begin, end, *span))
        around.append((end, qualified, is_class))
    return tuple(found)


def _outside(node: Node) -> int:
    """Where the decorators or the template head around a definition begin."""
    parent = node.parent
    return node.start_byte if parent is None else parent.start_byte


def _own_line_comments(
    captures: Mapping[str, list[Node]], data: bytes, line_starts: Sequence[int]
) -> dict[int, int]:
    """The first line of each comment that has its lines for itself, by its last line."""
    lines = {}
    for node in captures.get("comment", ()):
        begin, end = node.byte_range
        first = bisect_right(line_starts, begin)
        if not data[line_starts[first - 1] : begin].strip():
            lines[bisect_right(line_starts, max(begin, end - 1))] = first
    return lines


def _without_comments_after(
    last: int, comments: Mapping[int, int], data: bytes, line_starts: Sequence[int]
) -> int:
    """The last line of a Python block; its grammar counts comments behind the block to it."""
    line = last
    while line in comments or (
        line < last and not data[slice(*line_starts[line - 1 : line + 1])].strip()
    ):
        line -= 1
    return line


def _name_span(node: Node) -> tuple[int, int] | None:
    """The bytes of a unit's name; None when it has none."""
    for field in ("name", "key", "property", "left"):
        if name := node.child_by_field_name(field):
            return name.byte_range
    declared = node.child_by_field_name("declarator")
    for _ in range(_DEEPEST_DECLARATOR):
        inner = declared and declared.child_by_field_name("declarator")
        if inner is None:
            break
        declared = inner
    if declared is not None:
        return declared.byte_range
    if node.parent is not None and node.parent.type == "type_definition":
        declared = node.parent.child_by_field_name("declarator")
        return declared.byte_range if declared else None
    return None


def _parts(language: str, node: Node, written: str, data: bytes) -> tuple[str, ...]:
    """A name with the class that it says it belongs to."""
    if language == "go" and (receiver := node.child_by_field_name("receiver")):
        text = data[slice(*receiver.byte_range)].decode("utf-8", "replace")
        owner = _RECEIVER.search(text)
        return (owner[1], written) if owner else (written,)
    if written.isidentifier():
        return (written,)
    if language in ("c", "cpp", "cuda"):
        written = " ".join(_without_templates(written).split())
        return tuple(part.strip() for part in written.split("::") if part.strip()) or (written,)
    return (written.strip("'\"`#").rpartition(".")[2],)


def _without_templates(written: str) -> str:
    """A C++ name without its template arguments; an operator's own signs stay."""
    if "operator" in written:
        return written
    while (shorter := _TEMPLATE.sub("", written)) != written:
        written = shorter
    return written
