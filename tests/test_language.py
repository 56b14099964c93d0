"""Texts for users contain no word of the dialect that the project once had.

The list holds only words that plain technical English does not need; it cannot judge a sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (ROOT / "src" / "epochzero", ROOT / "models" / "src" / "epochzero_models")
GUIDES = ("README.md", "CHANGELOG.md", "docs/*.md", "docs/decisions/*.md")
BANNED = re.compile(
    r"(?i)(?<!-)\b(?:anew|beside|nobody|somebody|whoever|told|said|outside of|goes on|handed|given over|began|kept"
    r"|thrown away|not there|in the last resort|as good as nothing|looked at|can be had|is there already"
    r"|(?<!there )is no (?:text|number|file|list|JSON|TOML|table|name))\b"
)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


def _literal(node: ast.expr) -> str:
    """The constant parts of a string expression."""
    parts = [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return " ".join(parts) if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)) else ""


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Help texts of options and commands, and messages of raised errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield node.lineno, _literal(node.exc.args[0])
        elif isinstance(node, ast.keyword) and node.arg in ("help", "short_help"):
            yield node.value.lineno, _literal(node.value)
        elif isinstance(node, ast.FunctionDef) and any(
            "command" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            yield node.lineno, _CODE.sub("", ast.get_docstring(node) or "")


def test_help_and_errors_are_plain_technical_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        for line, text in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if BANNED.search(text)
    ]
    assert not found, "\n".join(found)


def test_guides_are_plain_technical_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for pattern in GUIDES
        for path in sorted(ROOT.glob(pattern))
        for match in BANNED.finditer(_CODE.sub("", path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


def test_signatures_and_taxonomy_are_plain_technical_english() -> None:
    dialect = re.compile(
        r"\b(?:anew|beside|folders?|goes on|got|hands? on|hands? over|than there is"
        r"|is no (?:tensor|matrix|image|number|program)|does not tell)\b"
    )
    folders = (PACKAGES[0] / "diagnose" / "signatures", PACKAGES[0] / "taxonomy")
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for folder in folders
        for path in sorted(folder.rglob("*.toml"))
        for key in ("title", "meaning", "definition")
        for text in re.findall(rf'^{key} = "(.*)"$', path.read_text(encoding="utf-8"), re.M)
        if dialect.search(_CODE.sub("", text))
    ]
    assert not found, "\n".join(found)
