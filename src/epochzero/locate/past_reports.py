"""Past reports from a file: what was reported before, and which files its fix changed."""

from __future__ import annotations

import json
from typing import Any

from epochzero.errors import InputError
from epochzero.locate.report import PastReport, read_report, seconds


def read_past(text: str) -> tuple[PastReport, ...]:
    """Reads JSON lines: an object each, with ``title``, ``body``, ``closed_at`` and ``files``.

    A report without words or without files is skipped.

    Raises:
        InputError: a line is no such object; the message names it.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            past = _past(line, f"line {number}")
            if past is not None:
                found.append(past)
    return tuple(found)


def _past(line: str, where: str) -> PastReport | None:
    raw = _object(line, where)
    closed = seconds(raw["closed_at"]) if isinstance(raw.get("closed_at"), str) else None
    if closed is None:
        raise InputError(f"{where}: closed_at must be a time such as 2024-05-01T12:00:00Z")
    files = raw.get("files")
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise InputError(f"{where}: files must be a list of the paths that the fix changed")
    try:
        report = read_report(json.dumps({"title": "", **raw}))
    except InputError:
        return None
    return PastReport(report, closed, tuple(files)) if files else None


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: invalid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InputError(f"{where} is not a JSON object")
    return raw
