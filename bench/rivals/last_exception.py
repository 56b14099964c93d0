"""The last line of the log that looks like an exception: what most people look at first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from epochzero.logs.source import Log
from rivals import Answer, Line, lines_of

__all__ = ["LastException", "last_exception"]

_EXCEPTION = re.compile(
    r"^(?:E\s+|\[?(?:rank)?\s?\d+\]?:?\s*|\([^)]*\)\s*)?"
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|Fault)(?::|\s*$)"
)


def last_exception(lines: Sequence[Line]) -> Line | None:
    """The last line that begins with the class of an exception."""
    for line in reversed(lines):
        if _EXCEPTION.match(line.text.strip()):
            return line
    return None


class LastException:
    """Names the last exception line as root; without one, says that nothing failed."""

    name = "last_exception"
    version = "own"

    def answer(self, logs: Sequence[Log], exit_code: int | None = None) -> Answer:
        """What the tool says of the job that wrote ``logs``."""
        found = last_exception(lines_of(logs))
        if found is None:
            return Answer(failed=False)
        return Answer(True, "", found.file, found.number, found.text, found.rank)
