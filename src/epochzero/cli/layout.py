"""Text for a terminal and for Markdown, out of what logs and repositories hold.

Both may be hostile: nothing of it may move a terminal's cursor or become markup.
"""

from __future__ import annotations

import re
import shutil
import textwrap

import click

from epochzero.markdown import code, escaped, fenced
from epochzero.number_formats import counted, duration, shorten, size

__all__ = [
    "code",
    "counted",
    "duration",
    "escaped",
    "fenced",
    "field",
    "one_line",
    "plain",
    "shorten",
    "size",
    "wrapped",
]

LABEL_WIDTH = 12
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Text without what a terminal would obey."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Text of a job or a repository in one line; a question mark for each byte that is no text."""
    line = plain(text.replace("\n", " ").replace("\t", " "))
    return line.encode("utf-8", "replace").decode()


def field(label: str, text: str) -> str:
    """A line with a label in front."""
    return f"{click.style(f'{label:<{LABEL_WIDTH}}', bold=True)}{plain(text)}"


def wrapped(label: str, text: str, fg: str | None = None) -> str:
    """Text behind a label, in lines that fit the terminal."""
    width = max(60, min(110, shutil.get_terminal_size((100, 24)).columns))
    lines = textwrap.wrap(plain(text), width - LABEL_WIDTH, break_on_hyphens=False) or [""]
    indent = " " * LABEL_WIDTH
    body = f"\n{indent}".join(click.style(line, fg=fg) if fg else line for line in lines)
    return f"{click.style(f'{label:<{LABEL_WIDTH}}', bold=True)}{body}"
