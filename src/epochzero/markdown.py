"""Markdown out of what logs, repositories and reports hold, which may be hostile."""

from __future__ import annotations

import re

_NOTHING = "&#8203;"
"""A space without width. GitHub looks for mentions and references in the text as it is shown, where an
escaped sign is the sign itself again; only what stands between its parts takes a mention apart."""
_SIGNS = {
    **{sign: f"\\{sign}" for sign in "\\`*_[]|~"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "@": f"@{_NOTHING}",
    "#": f"#{_NOTHING}",
}
_SIGN = re.compile(f"[{re.escape(''.join(_SIGNS))}]")
_LINK = re.compile(r"(?<=:)//|(?<=www)\.", re.IGNORECASE)


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
    """Any text for Markdown: no HTML, no links, no mentions of people or issues.

    >>> escaped("<b>@team</b> https://example.org")
    '&lt;b&gt;@&#8203;team&lt;/b&gt; https:&#8203;//example.org'
    """
    signs = _SIGN.sub(lambda found: _SIGNS[found[0]], text)
    return _LINK.sub(lambda found: f"{_NOTHING}{found[0]}", signs)
