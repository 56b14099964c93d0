"""Escapes text of jobs for HTML, so that it is displayed and never interpreted.

Colors and weight of terminal escape sequences (ECMA-48) become CSS classes; other sequences are
removed. Characters that reverse the order of a line, or that are invisible, are shown as names
(Boucher and Anderson, "Trojan Source: Invisible Vulnerabilities", USENIX Security 2023).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markupsafe import Markup, escape

LONGEST_LINE = 2000
"""Maximum number of displayed characters per line."""

_SEQUENCE = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])"  # Control sequences, including colors.
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # Strings, such as links and titles.
    r"|\x1b[ -/]*[0-~]?"
)
_CODE = re.compile(r"`([^`<>\n]+)`")
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_BOLD, _PLAIN, _NOT_BOLD, _NO_COLOR = 1, 0, 22, 39
_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def visible(text: object) -> Markup:
    """Escapes one or several lines; names invisible characters and removes escape sequences."""
    return _shown(_SEQUENCE.sub("", str(text)))


def prose(text: object) -> Markup:
    """A sentence of a diagnosis, in which backquotes enclose code."""
    # The text is escaped first, so that the code cannot contain markup.
    return Markup(_CODE.sub(r"<code>\1</code>", str(visible(text))))


def plain(text: object) -> str:
    """The same without markup, for attributes and SVG, which escape it themselves."""
    words = str(text)
    return words if words.isprintable() else visible(words).striptags()


def line(text: str) -> Markup:
    """Escapes a line of a log, with its colors; long lines are shortened."""
    more = len(text) - LONGEST_LINE
    shown = Markup("").join(_colored(_last_written(text[:LONGEST_LINE])))
    if more <= 0:
        return shown
    return shown + Markup('<span class="soft"> … {} more characters</span>').format(f"{more:,}")


def _last_written(text: str) -> str:
    """What a terminal shows of an overwritten line, such as a progress bar."""
    return text.rstrip("\r").rpartition("\r")[2]


def _colored(text: str) -> Iterator[Markup]:
    color, bold, at = "", False, 0
    for found in _SEQUENCE.finditer(text):
        yield _run(text[at : found.start()], color, bold)
        at = found.end()
        if found.group(2) == "m":
            color, bold = _style(found.group(1), color, bold)
    yield _run(text[at:], color, bold)


def _style(codes: str, color: str, bold: bool) -> tuple[str, bool]:
    """The style after a color sequence. Sequences for more than sixteen colors change nothing."""
    if re.fullmatch(r"[0-9;]*", codes) is None or {"38", "48"} & set(codes.split(";")):
        return color, bold
    for code in (int(word[:3] or 0) for word in codes.split(";")):
        if code == _PLAIN:
            color, bold = "", False
        elif code in (_BOLD, _NOT_BOLD):
            bold = code == _BOLD
        elif code == _NO_COLOR:
            color = ""
        elif 30 <= code <= 37 or 90 <= code <= 97:
            color = _COLORS[code % 10]
    return color, bold


def _run(text: str, color: str, bold: bool) -> Markup:
    shown = _shown(text)
    names = " ".join(filter(None, (f"t-{color}" if color else "", "t-bold" if bold else "")))
    return Markup('<span class="{}">{}</span>').format(names, shown) if names and shown else shown


def _shown(text: str) -> Markup:
    # Almost all texts, and a page has a thousand of them.
    return escape(text) if text.isprintable() else Markup("").join(_named(text))


def _named(text: str) -> Iterator[Markup]:
    """The text, with invisible characters replaced by their names."""
    at = 0
    for place, character in enumerate(text):
        if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
            continue
        yield escape(text[at:place])
        name = unicodedata.name(character, f"U+{ord(character):04X}").lower()
        yield Markup('<span class="hidden" title="{}">U+{}</span>').format(
            name, f"{ord(character):04X}"
        )
        at = place + 1
    yield escape(text[at:])
