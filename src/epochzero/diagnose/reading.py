"""The general reading: the category of an exception or a line that no signature knows.

The rules are data (``reading.toml``); they look at the class of the exception and at what its
message says, the message first, since the class alone does not decide (Zhang et al., ICSE 2020,
Section 3.2).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from epochzero.logs.patterns import PatternSet

__all__ = ["read"]


@dataclass(frozen=True, slots=True)
class _Rule:
    category: str
    type: re.Pattern[str] | None
    has_message: bool
    unless: re.Pattern[str] | None
    frame: re.Pattern[str] | None
    lines_only: bool

    def fits(self, kind: str, message: str, file: str) -> bool:
        """Whether what the rule says beside its message holds."""
        if self.lines_only and kind:
            return False
        if self.frame is not None and not self.frame.search(file):
            return False
        if self.type is not None and not (kind and self.type.search(kind)):
            return False
        return self.unless is None or not self.unless.search(message)


@lru_cache(maxsize=4096)
def read(kind: str, message: str, file: str = "") -> str:
    """The category by exception class and message; empty when no rule fits.

    Args:
        kind: class of the exception as printed; empty for a line that is none.
        message: the exception's message, or the line.
        file: of the innermost frame, where one is known.
    """
    short = kind.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    rules, messages = _rules()
    said = {number for _, number in messages.ends(message.encode())}
    for number, rule in enumerate(rules):
        if (number in said or not rule.has_message) and rule.fits(short, message, file):
            return rule.category
    return ""


NEVER = b"\\x00\\x01\\x00"
"""Stands for the message of a rule that has none, so that numbers stay aligned."""


@cache
def _rules() -> tuple[tuple[_Rule, ...], PatternSet]:
    text = files(__package__).joinpath("reading.toml").read_text(encoding="utf-8")
    raws = tomllib.loads(text)["rule"]
    rules = tuple(
        _Rule(
            category=raw["category"],
            type=re.compile(raw["type"]) if "type" in raw else None,
            has_message="message" in raw,
            unless=re.compile(raw["unless"]) if "unless" in raw else None,
            frame=re.compile(raw["frame"]) if "frame" in raw else None,
            lines_only=raw.get("lines_only", False),
        )
        for raw in raws
    )
    messages = [raw["message"].encode() if "message" in raw else NEVER for raw in raws]
    return rules, PatternSet(messages, once=True)
