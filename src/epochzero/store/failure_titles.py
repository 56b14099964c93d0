"""One-line descriptions of failures, such as ``KeyError: 'fox' in report (train.py)``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LONGEST = 110
_GUESSED = ("reading", "classifier")
"""The diagnosis' own title then only names the category."""
_PREFIX = re.compile(
    r"^(\[[^\]]*\]:?\s*|[\d:., TZ/+-]{8,}|(ERROR|CRITICAL|FATAL)\b[: ]*|[IWEF]\d{4} [^\]]{1,200}\] )+"
)


def failure_title(diagnosis: Mapping[str, Any]) -> str:
    """What failed and where, on one line; empty for an empty diagnosis."""
    what = _what(diagnosis)
    frame = diagnosis.get("user_frame") or {}
    name, file = str(frame.get("function") or ""), str(frame.get("file") or "")
    file = file.replace("\\", "/").rpartition("/")[2]
    if not file and diagnosis.get("basis") == "signature" and (text := _root_text(diagnosis)):
        return f"{what}: {text}"
    if name in ("", "<module>"):
        return f"{what} in {file}" if what and file else what
    return f"{what} in {name} ({file})" if what and file else what


def _what(diagnosis: Mapping[str, Any]) -> str:
    title = str(diagnosis.get("title") or "")
    if diagnosis.get("basis") not in _GUESSED:
        return title
    exception = diagnosis.get("exception") or {}
    if kind := str(exception.get("type") or "").rpartition(".")[2]:
        message = _line(str(exception.get("message") or ""))
        return f"{kind}: {message}" if message else kind
    return _root_text(diagnosis) or title


def _root_text(diagnosis: Mapping[str, Any]) -> str:
    """The line of the root cause without its time, level and rank."""
    return _PREFIX.sub("", _line(str((diagnosis.get("root") or {}).get("text") or ""))).strip()


def _line(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
