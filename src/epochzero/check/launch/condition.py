"""Conditions of the shell: exit statuses of commands and tests, ``[ ... ]``, ``[[ ... ]]``, ``(( ... ))``."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from epochzero.check.launch.expand import arithmetic, one, text_of
from epochzero.check.launch.model import Word
from epochzero.check.launch.setting import Setting

if TYPE_CHECKING:
    from tree_sitter import Node


Outcome = Enum("Outcome", ["TRUE", "FALSE", "MAYBE", "DONE"])
"""The outcome of a command: known, unknown, or assumed to be success."""


def outcome_of(value: bool) -> Outcome:
    """The outcome for a known success."""
    return Outcome.TRUE if value else Outcome.FALSE


def opposite(outcome: Outcome) -> Outcome:
    """The outcome of a command after ``!``."""
    opposites = {Outcome.TRUE: Outcome.FALSE, Outcome.FALSE: Outcome.TRUE}
    return opposites.get(outcome, Outcome.MAYBE)


def tested(node: Node, setting: Setting) -> Outcome:
    """``[ ... ]``, ``[[ ... ]]`` and ``(( ... ))``."""
    inner = [child for child in node.named_children if child.type != "comment"]
    if len(inner) != 1:
        return Outcome.MAYBE
    if text_of(node).startswith("(("):
        number = arithmetic(inner[0], setting)
        return Outcome.MAYBE if number is None else outcome_of(number != 0)
    return _holds(inner[0], setting)


def _holds(node: Node, setting: Setting) -> Outcome:
    """A condition of a test."""
    inner = node.named_children
    if node.type == "parenthesized_expression" and len(inner) == 1:
        return _holds(inner[0], setting)
    if node.type == "negation_expression" and inner:
        return opposite(_holds(inner[-1], setting))
    if node.type == "unary_expression":
        return _unary(node, setting)
    if node.type == "binary_expression":
        return _binary(node, setting)
    word = one(node, setting, setting.script.place(0))
    return outcome_of(bool(word.text)) if word.known else Outcome.MAYBE


def _unary(node: Node, setting: Setting) -> Outcome:
    """``-z x``, ``-n x``, ``! ...``; tests for files are unknown, since the files are the target's."""
    if node.children[0].type == "!":
        return opposite(_holds(node.children[-1], setting))
    word = one(node.children[-1], setting, setting.script.place(0))
    sign = text_of(node.children[0])
    if not word.known or sign not in ("-z", "-n"):
        return Outcome.MAYBE
    return outcome_of((sign == "-n") == bool(word.text))


def _binary(node: Node, setting: Setting) -> Outcome:
    """Two conditions, texts or numbers compared."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return Outcome.MAYBE
    sign = text_of(operator)
    if sign in ("&&", "-a", "||", "-o"):
        first = _holds(left, setting)
        # Bash does not expand what && and || skip; -a and -o skip nothing.
        if (sign, first) in (("&&", Outcome.FALSE), ("||", Outcome.TRUE)):
            return first
        return _both(first, _holds(right, setting), either=sign in ("||", "-o"))
    place = setting.script.place(*node.start_point)
    a, b = one(left, setting, place), one(right, setting, place)
    if sign in ("=", "==", "!=") and a.known:
        pattern = text_of(right) if "*" in text_of(right) and not b.known else b.text
        if not b.known and not ("*" in pattern and "$" not in pattern):
            return Outcome.MAYBE
        return outcome_of(fnmatch.fnmatchcase(a.text, pattern) == (sign != "!="))
    return _numbers(sign, a, b)


def compared(words: Sequence[Word]) -> Outcome:
    """``test ...`` as an ordinary command."""
    texts = [word.text for word in words[1:] if word.text != "]"]
    if len(texts) == 2 and texts[0] in ("-z", "-n") and words[2].known:
        return outcome_of((texts[0] == "-n") == bool(texts[1]))
    if len(texts) != 3 or not all(word.known for word in words):
        return Outcome.MAYBE
    if texts[1] in ("=", "==", "!="):
        return outcome_of((texts[0] == texts[2]) == (texts[1] != "!="))
    return _numbers(texts[1], words[1], words[3])


def _both(a: Outcome, b: Outcome, *, either: bool) -> Outcome:
    strong, weak = (Outcome.TRUE, Outcome.FALSE) if either else (Outcome.FALSE, Outcome.TRUE)
    if strong in (a, b):
        return strong
    return weak if a == b == weak else Outcome.MAYBE


def _numbers(sign: str, a: Word, b: Word) -> Outcome:
    """The numbers of a test."""
    try:
        x, y = int(a.text[:20]), int(b.text[:20])
    except ValueError:
        return Outcome.MAYBE
    if not a.known or not b.known:
        return Outcome.MAYBE
    answers = {
        "-eq": x == y,
        "-ne": x != y,
        "-lt": x < y,
        "-le": x <= y,
        "-gt": x > y,
        "-ge": x >= y,
    }
    return outcome_of(answers[sign]) if sign in answers else Outcome.MAYBE
