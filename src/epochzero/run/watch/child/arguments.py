"""The command line of the job, as far as it holds settings: numbers and plain words.

What else a value may be, a path, an address or a secret, is hidden: it is not needed, and stays in the process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

HIDDEN = "[hidden]"
MOST_WORDS = 200
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]{0,60})(?:(=)(.*))?", re.DOTALL)
_PLAIN = re.compile(r"[-+\d.,eE]{1,60}|[A-Za-z][A-Za-z_-]{0,30}")
_SECRET = re.compile(
    r"secret|passw|passphrase|credential|private|key|auth|token(?!s|iz)|cookie|session|pin\b", re.I
)


def arguments(words: Sequence[str] | None = None) -> list[str]:
    """The words behind the program's name; ``--lr=10`` is two.

    Args:
        words: of the command line, the program's name first; None for this process's.
    """
    found: list[str] = []
    is_secret = False
    for word in (getattr(sys, "argv", []) if words is None else words)[1:MOST_WORDS]:
        option = _OPTION.fullmatch(word)
        if option is None:
            found.append(HIDDEN if is_secret or not _PLAIN.fullmatch(word) else word)
            continue
        name, equals, value = option.groups()
        is_secret = bool(_SECRET.search(name))
        found.append(name)
        if equals:
            found.append(HIDDEN if is_secret or not _PLAIN.fullmatch(value) else value)
    return found
