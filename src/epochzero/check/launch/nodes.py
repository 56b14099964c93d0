"""Composed YAML nodes, which have line numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.setting import Script


def entries(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    """The entries of a mapping; none for other nodes."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key.value, value


def entry(node: yaml.Node | None, *path: str) -> yaml.Node | None:
    """The node at a path of nested mappings; None if it does not exist."""
    for name in path:
        node = next((value for key, value in entries(node) if key == name), None)
    return node


def listed(node: yaml.Node | None) -> Sequence[yaml.Node]:
    """The items of a list; none for other nodes."""
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def written(node: yaml.Node | None) -> str:
    """The text of a scalar; empty for other nodes."""
    return node.value if isinstance(node, yaml.ScalarNode) else ""


def scalars(node: yaml.Node | None) -> Iterator[tuple[str, str, int]]:
    """The scalar entries of a mapping: key, text, row from 0."""
    for key, value in entries(node):
        if isinstance(value, yaml.ScalarNode):
            yield key, value.value, value.start_mark.line


def place_of(script: Script, node: yaml.Node) -> SourceLocation:
    """The location of a node; a block scalar begins on the line after its indicator."""
    block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return script.place(node.start_mark.line + block, 0 if block else node.start_mark.column)
