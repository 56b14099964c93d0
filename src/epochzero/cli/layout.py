"""Text for a terminal and for Markdown, out of what logs and repositories hold.

Both may be hostile: nothing of it may move a terminal's cursor or become markup.
"""

from __future__ import annotations

import re
import shutil
import textwrap

import click

__all__ = ["code", "counted", "escaped", "fenced", "field", "plain", "shorten", "size", "wrapped"]

LABEL_WIDTH = 12
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Text without what a terminal would obey."""
    return _CONTROL.sub("", text)


def counted(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shorten(text: str, length: int) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= length else text[: length - 1] + "…"


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


def code(text: str) -> str:
    """A code span that the text itself cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}"


def fenced(text: str) -> str:
    """A code block that the text itself cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def escaped(text: str) -> str:
    """Any text for Markdown: no HTML, no links, no mentions."""
    for character in "\\`*_[]<>|#@":
        text = text.replace(
            character,
            "\\" + character
            if character not in "<>@"
            else {"<": "&lt;", ">": "&gt;", "@": "&#64;"}[character],
        )
    return text


def duration(seconds: float) -> str:
    """3 d 04 h, 2 h 05 min, 7 min 30 s or 12 s."""
    minutes, second = divmod(round(max(0.0, seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour:02d} h"
    if hours:
        return f"{hours} h {minute:02d} min"
    return f"{minutes} min {second:02d} s" if minutes else f"{second} s"


def size(count: float) -> str:
    """1.5 GB, 320 MB, 12 kB or 86 B."""
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count:.0f} B"
