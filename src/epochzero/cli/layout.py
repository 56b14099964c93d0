"""Text of logs and repositories, formatted for a terminal and for Markdown.

Such text may be hostile: it must not control the terminal or become markup.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from epochzero.markdown import code, escaped, fenced
from epochzero.number_formats import counted, duration, shorten, size

LABEL_WIDTH = 12
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Remove terminal control sequences."""
    return _CONTROL.sub("", text)


def short_path(path: str) -> str:
    """A path relative to the current directory if it is below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def one_line(text: str) -> str:
    """Return text of a job or a repository in one line, with a question mark for each byte that is not text."""
    line = plain(text.replace("\n", " ").replace("\t", " "))
    return line.encode("utf-8", "replace").decode()


def field(label: str, text: str) -> str:
    """Return a line with a label."""
    return f"{click.style(f'{label:<{LABEL_WIDTH}}', bold=True)}{plain(text)}"


def wrapped(label: str, text: str, fg: str | None = None) -> str:
    """Wrap labeled text to the width of the terminal."""
    width = max(60, min(110, shutil.get_terminal_size((100, 24)).columns))
    lines = textwrap.wrap(plain(text), width - LABEL_WIDTH, break_on_hyphens=False) or [""]
    indent = " " * LABEL_WIDTH
    body = f"\n{indent}".join(click.style(line, fg=fg) if fg else line for line in lines)
    return f"{click.style(f'{label:<{LABEL_WIDTH}}', bold=True)}{body}"


def listed(label: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield texts, each `wrapped`; only the first has the label."""
    for number, text in enumerate(texts):
        yield wrapped("" if number else label, text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines, without terminal control sequences."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return [plain(line.rstrip()) for line in lines]
