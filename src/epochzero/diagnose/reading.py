"""The general reading: the category of an exception or a line that no signature knows.

The rules are data (``reading.toml``); they look at the class of the exception and at what its
message says, the message first, since the class alone does not decide (Zhang et al., ICSE 2020,
Section 3.2).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["read"]


@dataclass(frozen=True, slots=True)
class _Rule:
    category: str
    type: re.Pattern[str] | None
    message: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    lines_only: bool

    def fits(self, kind: str, message: str) -> bool:
        if self.lines_only and kind:
            return False
        if self.type is not None and not (kind and self.type.search(kind)):
            return False
        if self.message is not None and not self.message.search(message):
            return False
        return self.unless is None or not self.unless.search(message)


def read(kind: str, message: str) -> str:
    """The category by exception class and message; empty when no rule fits.

    Args:
        kind: class of the exception as printed; empty for a line that is none.
        message: the exception's message, or the line.
    """
    short = kind.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    for rule in _rules():
        if rule.fits(short, message):
            return rule.category
    return ""


@cache
def _rules() -> tuple[_Rule, ...]:
    text = files(__package__).joinpath("reading.toml").read_text(encoding="utf-8")
    return tuple(
        _Rule(
            category=raw["category"],
            type=re.compile(raw["type"]) if "type" in raw else None,
            message=re.compile(raw["message"]) if "message" in raw else None,
            unless=re.compile(raw["unless"]) if "unless" in raw else None,
            lines_only=raw.get("lines_only", False),
        )
        for raw in tomllib.loads(text)["rule"]
    )
