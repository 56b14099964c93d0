"""Size and complexity of Python files, for subsets of bugs with similar files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from epochzero.code.parse import syntax_of

if TYPE_CHECKING:
    from tree_sitter import Node


_FUNCTION = "function_definition"
_DECISIONS = frozenset(
    """
    if_statement elif_clause for_statement while_statement except_clause case_clause
    conditional_expression boolean_operator for_in_clause if_clause assert_statement
    """.split()
)


class FileSize(NamedTuple):
    """Size of a file.

    Attributes:
        lines: lines that are neither empty nor only a comment.
        complexity: mean cyclomatic complexity of its functions: decisions in the file per function, plus 1
            (T. McCabe: "A Complexity Measure", IEEE TSE 2(4), 1976); each ``and`` and ``or``, each loop and
            condition of a comprehension, and each ``assert`` adds 1. None if it has no function or cannot be
            parsed.
    """

    lines: int
    complexity: float | None


def size_of(data: bytes, path: str) -> FileSize:
    """Measure a Python file.

    >>> size_of(b"def f(x):\\n    # why\\n    return 1 if x else 2\\n", "f.py")
    FileSize(lines=2, complexity=2.0)
    """
    stripped = (line.strip() for line in data.splitlines())
    lines = sum(bool(line) and not line.startswith(b"#") for line in stripped)
    syntax = syntax_of(data, path)
    if syntax is None:
        return FileSize(lines, None)
    kinds = [node.type for node in _nodes(syntax.root)]
    functions = kinds.count(_FUNCTION)
    decisions = sum(kind in _DECISIONS for kind in kinds)
    return FileSize(lines, decisions / functions + 1 if functions else None)


def _nodes(root: Node) -> Iterator[Node]:
    """Yield all nodes without recursion: code may be deeply nested."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.named_children
