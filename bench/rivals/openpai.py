"""OpenPAI's job exit specification: its regular expressions over a job's log.

The specification is read from a clone of microsoft/pai when the benchmark runs. It names exit
codes, not categories; the table below says which of our categories each of its rules comes
closest to, to its advantage: a code whose patterns mean different things has one category for
each pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from epochzero.logs.source import Log
from rivals import Answer, text_of
from rivals.sources import commit, read

__all__ = ["OpenPai"]

# Of its exit code 255: a failure that no rule recognizes.
_REACTION_TO_UNKNOWN = "RETRY_TO_MAX"
_SPECIFICATION = "src/k8s-job-exit-spec/config/k8s-job-exit-spec.yaml"

# Exit code -> category, or one category for each of its patterns, in their order.
_CATEGORIES: dict[int, str | tuple[str, ...]] = {
    128: "gpu_fault",
    130: "interrupted",
    131: "interrupted",
    132: "process_crash",
    134: "process_crash",
    135: "process_crash",
    136: "process_crash",
    137: "cpu_out_of_memory",
    139: "process_crash",
    141: "process_crash",
    143: "interrupted",
    220: "library_not_found",
    221: "gpu_out_of_memory",
    222: "process_crash",
    223: "gpu_fault",
    224: "gpu_fault",
    225: "framework_api_misuse",
    226: "gpu_out_of_memory",
    228: (
        "illegal_argument",
        "framework_api_misuse",
        "illegal_argument",
        "illegal_argument",
        "illegal_argument",
    ),
    229: (
        "corrupt_data",
        "path_not_found",
        "path_not_found",
        "path_not_found",
        "unexpected_encoding",
        "unexpected_encoding",
        *("corrupt_data",) * 7,
    ),
    230: "path_not_found",
    231: (
        "syntax_error",
        "corrupt_data",
        "tensor_mismatch",
        "internal_error",
        "attribute_not_found",
        "undefined_variable",
    ),
    232: "library_not_found",
    233: "illegal_index",
    234: "process_crash",
    235: "process_crash",
    249: "communication_failure",
}


@dataclass(frozen=True, slots=True)
class _Rule:
    """One pattern: an exit code, a regular expression over the log, or both."""

    category: str
    reaction: str
    exit_code: int | None
    expression: re.Pattern[str] | None

    def fits(self, exit_code: int | None) -> bool:
        """Whether the exit code allows the rule; an unknown one does if there is more to it."""
        if self.exit_code is None or self.exit_code == exit_code:
            return True
        return exit_code is None and self.expression is not None


class OpenPai:
    """The first rule of the specification that fits.

    Args:
        repository: a clone of microsoft/pai.
    """

    name = "openpai"

    def __init__(self, repository: Path) -> None:
        self.version = commit(repository)
        specification: dict[str, Any] = yaml.safe_load(read(repository, _SPECIFICATION))
        self._rules = [rule for entry in specification["spec"] for rule in _rules(entry)]

    def answer(self, logs: Sequence[Log], exit_code: int | None = None) -> Answer:
        """What the tool says of the job that wrote ``logs``."""
        return next(
            (answer for _, answer in self._fitting(logs, exit_code)),
            Answer(failed=False, category="not_a_failure"),
        )

    def reaction(self, logs: Sequence[Log], exit_code: int | None = None) -> str:
        """What its scheduler does after this failure, such as NEVER_RETRY or RETRY_TO_MAX."""
        rules = (rule.reaction for rule, _ in self._fitting(logs, exit_code))
        return next(rules, _REACTION_TO_UNKNOWN)

    def _fitting(
        self, logs: Sequence[Log], exit_code: int | None
    ) -> Iterator[tuple[_Rule, Answer]]:
        texts = [(log, text_of(log)) for log in logs]
        for rule in self._rules:
            if not rule.fits(exit_code):
                continue
            if rule.expression is None:
                yield rule, Answer(True, rule.category)
                continue
            for log, text in texts:
                if found := rule.expression.search(text):
                    yield rule, _answer(rule, log, text, found.start())


def _answer(rule: _Rule, log: Log, text: str, at: int) -> Answer:
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0]
    return Answer(True, rule.category, log.name, text.count("\n", 0, at) + 1, line, log.rank)


def _rules(entry: dict[str, Any]) -> list[_Rule]:
    """The patterns of one exit code that a log or an exit code can fulfil."""
    rules: list[_Rule] = []
    patterns = entry.get("pattern", {}).get("runtimeContainerPatterns") or []
    for number, pattern in enumerate(patterns):
        mapped = _CATEGORIES[entry["code"]]
        expression = pattern.get("userLogRegex") or pattern.get("platformLogRegex")
        if expression is None and "exitCode" not in pattern:
            continue
        rules.append(
            _Rule(
                category=mapped if isinstance(mapped, str) else mapped[number],
                reaction=entry.get("reaction", _REACTION_TO_UNKNOWN),
                exit_code=pattern.get("exitCode"),
                expression=re.compile(expression) if expression else None,
            )
        )
    return rules
