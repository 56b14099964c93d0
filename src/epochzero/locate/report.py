"""A bug report: what somebody wrote about a fault."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from epochzero.errors import InputError

MOST_CHARACTERS = 200_000
"""A longer report contains a pasted log, whose head and end suffice."""


@dataclass(frozen=True, slots=True)
class Report:
    """A bug report.

    Attributes:
        title: its summary.
        text: its description; Markdown or plain.
        id: in its tracker; empty if it comes from none.
        opened: when it was opened, in seconds since the epoch; None where that is not known.
    """

    title: str
    text: str = ""
    id: str = ""
    opened: float | None = None


@dataclass(frozen=True, slots=True)
class PastReport:
    """A report that was closed, with the files that its fix changed.

    Attributes:
        report: what was written.
        closed: when it was closed, in seconds since the epoch.
        fixed: paths at the time of the fix.
    """

    report: Report
    closed: float
    fixed: tuple[str, ...]


def read_report(text: str, *, is_json: bool = False) -> Report:
    """A report from what a file holds: a tracker's JSON, Markdown, or plain text.

    Of JSON ``title``, ``body``, ``number`` and ``created_at`` are read, as GitHub gives them; of
    other text the first line is the title.

    Args:
        text: what the file holds.
        is_json: whether other text is refused, as the file's name says that it holds JSON.

    Raises:
        InputError: there is nothing to read, or it is JSON that is broken or no report.
    """
    if (is_json or _LIKE_JSON.match(text)) and (raw := _json(text, is_json)) is not None:
        title, body = str(raw.get("title") or ""), str(raw.get("body") or "")
        report = Report(
            _cut(_clean(title)), _cut(_clean(body)), str(raw.get("number") or ""), _opened(raw)
        )
    else:
        first, _, rest = _clean(text).strip().partition("\n")
        report = Report(_cut(first.lstrip("# ").strip()), _cut(rest.strip()))
    if not re.search(r"\w", report.title + report.text):
        raise InputError("the report is empty: a title or description is required")
    return report


def seconds(time: str | None) -> float | None:
    """A tracker's time stamp as seconds since the epoch; None where it is none."""
    try:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() if time else None
    except ValueError:
        return None


_LIKE_JSON = re.compile(r"\ufeff?\s*(?:\{\s*[\"}]|\[\s*[\[{\"])")
"""Prose can begin with a bracket, too: ``[Bug] ...``."""


def _json(text: str, is_json: bool) -> dict[str, Any] | None:
    """The object in a text that looks like JSON; None where prose follows it, unless it has to be JSON.

    Raises:
        InputError: it is broken, or no report.
    """
    try:
        raw = json.loads(text.lstrip("\ufeff"))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and not is_json:
            return None
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"the report is invalid JSON at {place}: {error.msg}") from error
    except RecursionError as error:
        raise InputError("the report is JSON that is nested too deeply") from error
    if not isinstance(raw, dict):
        kind = "list" if isinstance(raw, list) else "value"
        raise InputError(
            f"the report is a JSON {kind}; pass one report, an object with a title or body"
        )
    if "title" not in raw and "body" not in raw:
        raise InputError("the report is a JSON object without a title or a body")
    return raw


def _opened(raw: dict[str, Any]) -> float | None:
    # As GitHub's interface and as its command line call it.
    time = raw.get("created_at") or raw.get("createdAt")
    return seconds(time) if isinstance(time, str) else None


def _clean(text: str) -> str:
    return html.unescape(text.replace("\r\n", "\n").replace("\0", ""))


def _cut(text: str) -> str:
    """The head and the end of a text that is too long."""
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]}\n{text[-half:]}"
