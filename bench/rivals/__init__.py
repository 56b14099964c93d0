"""The other ways to diagnose a log that EpochZero is compared with, behind one small interface."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from epochzero.diagnose import Diagnosis
from epochzero.logs.source import Log, rank_of

__all__ = ["Answer", "Line", "Rival", "answer_of", "lines_of", "text_of"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says of one job.

    Attributes:
        failed: whether it says that the job failed.
        category: in our words; empty when the tool names none.
        file, line, text: the line it names as the first cause; empty text when it names none.
        rank: of that line, from the tool, or else from the name of the file.
    """

    failed: bool
    category: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    rank: int | None = None


_RANK = re.compile(r"^\s*\[(?:rank|default|\d+, ?|[\w.-]*:)?(\d+)\]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one of a job's logs; numbers count from 1."""

    file: str
    number: int
    text: str

    @property
    def rank(self) -> int | None:
        """From the prefix of the line, or else from the name of the file."""
        found = _RANK.match(self.text)
        return int(found[1]) if found else rank_of(self.file)


class Rival(Protocol):
    """A tool that answers for one job at a time."""

    @property
    def name(self) -> str:
        """As it stands in result files."""

    @property
    def version(self) -> str:
        """Version or commit."""

    def answer(self, logs: Sequence[Log], exit_code: int | None = None) -> Answer:
        """What the tool says of the job that wrote ``logs``."""


def answer_of(found: Diagnosis) -> Answer:
    """EpochZero's diagnosis in the form that all tools share."""
    category = "not_a_failure" if found.outcome == "no_failure" else found.category
    root = found.root
    if root is None:
        return Answer(found.outcome != "no_failure", category)
    return Answer(
        found.outcome != "no_failure", category, root.file, root.line or 0, root.text, root.rank
    )


def text_of(log: Log) -> str:
    """The whole log as text."""
    return b"".join(block.data for block in log.blocks()).decode("utf-8", "replace")


def lines_of(logs: Sequence[Log]) -> list[Line]:
    """All lines of a job, file after file."""
    return [
        Line(log.name, number, text)
        for log in logs
        for number, text in enumerate(text_of(log).split("\n"), 1)
    ]
