"""Detects lines with which a program announces what it does next, such as "Running inference ..."."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 120
"""Longer lines report something else as well."""
_BEGINS = (
    r"(?:start(?:s|ing|ed)?|begin(?:s|ning)?|run(?:s|ning)?|perform(?:s|ing)?|launch(?:es|ing)?"
    r"|enter(?:s|ing)?)\s+(?:(?:to|the|with|model)\s+)?"
)
_SUBJECT = (
    r"(?=\W*$|\W+(?:for|on|with|from|at|in|of|the|step|epoch|model|run|loop|phase|now|\d))"
    r"(?!\W*[:=]\s*\S)"
)
"""What may follow the name of a task in an announcement, unlike in "training loss" or "test set"."""
_TASKS = {
    "training": (
        r"(?:train|fine-?tun|pre-?train)(?:ing|e)?",
        r"(?:training|fine-?tuning|pre-?training)",
    ),
    "evaluation": (
        r"(?:evaluat(?:e|ing|ion)|eval|test(?:ing)?|infer(?:ence|ring)?|predict(?:ing|ions?)?|benchmark(?:ing)?"
        r"|decoding|export(?:ing)?)",
        r"(?:evaluating|evaluation|testing|inference|predicting|benchmarking|exporting"
        r"|computing (?:the )?(?:\w+ )?(?:metrics?|scores?|accuracy|bleu|rouge|fid|map))",
    ),
    "preprocessing": (
        r"(?:pre-?process(?:ing)?|tokeni[sz](?:ing|ation|e)|(?:data|feature) (?:extraction|preparation))",
        r"(?:pre-?processing(?: data)?|tokeni[sz]ing|extracting features?|preparing (?:the )?data\w*"
        r"|building (?:the )?vocab\w*)",
    ),
}
"""Of each phase, how a task is called after a word such as "start", and how alone."""
_ANNOUNCED = {
    phase: re.compile(
        r"(?i)^\W{0,60}?(?:\[?\d+/\d+\]? |(?:now|step|stage|phase) ?\d{0,3}\W{1,3})?"
        r"(?:(?:INFO|DEBUG)\W{1,4})?"
        rf"(?:{_BEGINS}{begun}\b(?!\W*[:=]\s*\S)|{alone}{_SUBJECT})"
    )
    for phase, (begun, alone) in _TASKS.items()
}
_OVER = re.compile(
    r"(?i)\b(?:finish\w*|done|complete\w*|end(?:ed|s)?|fail\w*|took|skip\w*|script|successfully|time|args"
    r"|arguments|loss|builds?)\b"
)
"""Words of lines that report an end, or name a thing and no task."""


def announced(text: str) -> str:
    """The phase that a line without its prefix announces; empty if it announces none."""
    text = text.strip()
    if len(text) > LONGEST or _OVER.search(text):
        return ""
    return next((phase for phase, pattern in _ANNOUNCED.items() if pattern.match(text)), "")


def last_announced(texts: Iterable[str]) -> str:
    """The phase that the last announcement among lines names; empty if none does."""
    return next(filter(None, map(announced, reversed(list(texts)))), "")
