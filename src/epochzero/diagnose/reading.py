"""General rules for the category of an exception or a line that matches no signature.

The rules are data (``reading.toml``). They use the class of the exception and its message,
the message first, because the class alone does not determine the category (Zhang et al., ICSE 2020,
Section 3.2). If a rule is a mere catch-all, or none fits, what the message says did not hold decides
(``message``).
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from epochzero.diagnose.message import category_of, read_message
from epochzero.logs.patterns import PatternSet


@dataclass(frozen=True, slots=True)
class _ReadingRule:
    category: str
    type: re.Pattern[str] | None
    has_message: bool
    unless: str
    frame: str
    lines_only: bool
    guess: bool
    catch_all: bool

    def may_fit(self, kind: str, file: str) -> bool:
        """Whether the rule's conditions on class and frame hold."""
        if self.lines_only and kind:
            return False
        if self.type is not None and not (kind and self.type.search(kind)):
            return False
        return not self.frame or re.search(self.frame, file) is not None


_NAMED = re.compile(
    r"(?:^|[\s|:>\]])(?:[A-Za-z_]\w*\.)*(?P<type>[A-Z]\w*(?:Error|Exception))"
    r"(?: \(see above for traceback\))?: (?P<message>.+)"
)
"""An exception that a line names."""


class CategoryDecision(NamedTuple):
    """The category that the general reading decides.

    Attributes:
        category: empty if no rule matches.
        basis: what it rests on: a rule (``class``, ``words``, ``catch_all`` or ``guess``), or the
            ``message`` alone.
    """

    category: str
    basis: str


@lru_cache(maxsize=4096)
def read(kind: str, message: str, file: str = "", code: str = "") -> CategoryDecision:
    """The category by exception class and message.

    Args:
        kind: class of the exception as printed; empty for a line without one.
        message: the exception's message, or the line.
        file: of the innermost frame, if known.
        code: source line of that frame, which says what an assertion without a message is about.
    """
    if not kind and (named := _NAMED.search(message)):
        return read(named["type"], named["message"], file)
    if kind == "AssertionError" and (not message or _asserts_silently(code)):
        return _of_assertion(file, code)
    rule = _deciding(kind, message, file)
    if rule is None:
        return CategoryDecision(category_of(read_message(message)) if kind else "", "message")
    if rule.catch_all and (category := category_of(read_message(message))):
        return CategoryDecision(category, "message")
    if rule.guess or rule.catch_all:
        return CategoryDecision(rule.category, "guess" if rule.guess else "catch_all")
    return CategoryDecision(rule.category, "words" if rule.has_message else "class")


_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_OF_CALLERS = frozenset({"framework_api_misuse", "loss_nan", "path_not_found"})
"""Categories of what a caller did wrong even if a library asserts it without a word."""


def _of_assertion(file: str, code: str) -> CategoryDecision:
    """The category of an assertion without a message: its source line says what it is about.

    In a library it is about the library's own state, unless it asserts what only callers decide.
    """
    stated = category_of(read_message("", code))
    if _INSTALLED.search(file):
        return CategoryDecision(stated if stated in _OF_CALLERS else "internal_error", "class")
    return CategoryDecision(stated or "illegal_argument", "guess")


def _asserts_silently(code: str) -> bool:
    """Whether a source line is an assertion without a message: text below it belongs to something else."""
    if not code.startswith("assert"):
        return False
    try:
        statement = ast.parse(code).body[0]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return isinstance(statement, ast.Assert) and statement.msg is None


_OUTSIDE = frozenset(
    {
        "cpu_out_of_memory", "gpu_out_of_memory", "library_not_found", "path_not_found",
        "permission_denied", "storage_full",
    }
)  # fmt: skip
"""Reasons outside of a process that explain more than that it ended itself."""


_IN_KERNEL = re.compile(r"thread: \[[\d,]+\] Assertion `([^`\n]+)` failed")
_WORDS = re.compile(r"_|(?<=[a-z])(?=[A-Z])")
"""Where the words of a name in code meet."""


def stated_reason(kind: str, message: str, general: str) -> str:
    """The category of a failed check: the reason that its message states, else the ``general`` one.

    A process that ended itself crashed, whatever it compared, unless the reason is outside of it. If
    Python caught the failed check as an exception, nothing crashed.
    """
    asserted = _IN_KERNEL.search(message)
    code = f"assert {_WORDS.sub(' ', asserted[1]).lower()}" if asserted else ""
    reading = read_message("" if asserted else message, code)
    compared = asserted and reading.subject == "shape"
    stated = "tensor_mismatch" if compared else category_of(reading)
    if general != "process_crash":
        return stated or general
    if kind and "::" not in kind and kind != "Fatal Python error":
        return stated or "internal_error"
    return stated if stated in _OUTSIDE else general


def _deciding(kind: str, message: str, file: str) -> _ReadingRule | None:
    """The rule that fits: what an exception is, its first line says; but it may be a mere heading."""
    short = kind.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    first, _, rest = message.partition("\n")
    early = _rule(short, first, file, guess=False) if rest else None
    return early or _rule(short, message, file, guess=True)


def prepare() -> None:
    """Compiles everything at once, which takes a second; for callers that read many messages."""
    _messages().prepare()


def _rule(kind: str, message: str, file: str, *, guess: bool) -> _ReadingRule | None:
    contained = _messages().said_in(message)
    for number, rule in enumerate(_rules()):
        if rule.guess and not guess:
            break
        if not rule.may_fit(kind, file) or (rule.has_message and number not in contained):
            continue
        if not rule.unless or not re.search(rule.unless, message):
            return rule
    return None


class Messages:
    """The message patterns of all rules.

    Searching them one by one is slow, and compiling a combined search takes a second. The first messages
    are therefore searched one by one, and only callers that read many messages pay for the combined search.

    Args:
        patterns: one per rule; None for a rule without.
        slow_readings: number of messages that are searched one by one.
    """

    def __init__(self, patterns: Sequence[str | None], slow_readings: int = 1000) -> None:
        self._numbers = [n for n, pattern in enumerate(patterns) if pattern is not None]
        self._patterns = [pattern for pattern in patterns if pattern is not None]
        self._slow = patterns
        self._left = slow_readings

    def said_in(self, message: str) -> Container[int]:
        """The numbers of the rules whose pattern occurs in the message."""
        self._left -= 1
        if self._left >= 0:
            return _Said(self._slow, message)
        return frozenset(self._numbers[n] for _, n in self._fast.ends(message.encode()))

    def prepare(self) -> None:
        """Uses the combined search for all further messages."""
        self._left = 0
        _ = self._fast

    @cached_property
    def _fast(self) -> PatternSet:
        return PatternSet([pattern.encode() for pattern in self._patterns], once=True)


@dataclass(frozen=True, slots=True)
class _Said:
    """The numbers of the patterns that occur in a message, searched on demand."""

    patterns: Sequence[str | None]
    message: str

    def __contains__(self, number: object) -> bool:
        pattern = self.patterns[number] if isinstance(number, int) else None
        return pattern is not None and _compiled(pattern).search(self.message) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled when the first message needs it: a short log needs few of them."""
    return re.compile(pattern, re.ASCII)


@cache
def _raw() -> list[dict[str, Any]]:
    text = files(__package__).joinpath("reading.toml").read_text(encoding="utf-8")
    rules: list[dict[str, Any]] = tomllib.loads(text)["rule"]
    return rules


@cache
def _messages() -> Messages:
    return Messages(["|".join(raw["message"]) if "message" in raw else None for raw in _raw()])


@cache
def _rules() -> tuple[_ReadingRule, ...]:
    return tuple(
        _ReadingRule(
            category=raw["category"],
            type=re.compile(raw["type"]) if "type" in raw else None,
            has_message="message" in raw,
            unless=raw.get("unless", ""),
            frame=raw.get("frame", ""),
            lines_only=raw.get("lines_only", False),
            guess=raw.get("guess", False),
            catch_all=raw.get("catch_all", False),
        )
        for raw in _raw()
    )
