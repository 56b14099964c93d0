"""Findings that the job's authors have looked at and want to live with.

A comment ``# epochzero: ignore[rule-id] reason`` takes away the findings of the rule on its line, or
anywhere in the statement that the line is part of; alone on a line, those of the next line. It
counts only with a reason. A suppression that suppresses nothing is reported, since it would hide the
next finding.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from epochzero.check.findings import Finding, SourceLocation
from epochzero.check.rules import UNREAD, builtin
from epochzero.check.settings import CheckSettings

WITHOUT_REASON = "suppression-without-reason"
UNUSED = "suppression-unused"
_COMMENT = re.compile(r"#\s*epochzero:\s*ignore\[([^\]\n]*)\]\s*(.*)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment that suppresses.

    Attributes:
        rules: ids that it names.
        reason: empty where none is given.
        place: of the comment.
        first, last: lines whose findings it takes away.
    """

    rules: tuple[str, ...]
    reason: str
    place: SourceLocation
    first: int
    last: int

    def covers(self, finding: Finding) -> bool:
        """Whether it takes this finding away, if it has a reason."""
        return (
            finding.rule in self.rules
            and finding.place.path == self.place.path
            and self.first <= finding.place.line <= self.last
        )


def suppressions(path: str, text: str) -> tuple[Suppression, ...]:
    """The suppressions in a file of the job: Python, a shell script, a configuration."""
    if "epochzero:" not in text:
        return ()
    lines = text.splitlines()
    spans = _statements(text) if path.endswith(".py") else None
    found = []
    for number, line in enumerate(lines, 1):
        if match := _COMMENT.search(line):
            alone = not line[: match.start()].strip()
            if spans is not None and (number, match.start()) not in spans.comments:
                continue
            first, last = (number + 1,) * 2 if alone else (number, number)
            if spans is not None:
                first, last = spans.by_line.get(first, (first, last))
            rules = tuple(filter(None, (name.strip() for name in match[1].split(","))))
            place = SourceLocation(path, number, match.start() + 1, line.strip())
            found.append(Suppression(rules, match[2].strip(), place, first, last))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Spans:
    """Of Python source where comments begin, and which lines each statement has."""

    comments: frozenset[tuple[int, int]]
    by_line: Mapping[int, tuple[int, int]]


def _statements(text: str) -> _Spans | None:
    """None for a text that is no Python; then each line stands alone."""
    comments: set[tuple[int, int]] = set()
    by_line: dict[int, tuple[int, int]] = {}
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                # A regular expression finds the mark; the comment may begin before it.
                start = _COMMENT.search(token.string)
                comments.add((token.start[0], token.start[1] + (start.start() if start else 0)))
            elif token.type == tokenize.NEWLINE:
                span = (first, token.end[0])
                by_line |= dict.fromkeys(range(span[0], span[1] + 1), span)
                first = 0
            elif not first and token.type not in _BLANK:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return _Spans(frozenset(comments), by_line)


_BLANK = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


def apply(
    findings: Iterable[Finding],
    comments: Sequence[Suppression],
    settings: CheckSettings,
    asked: Iterable[str],
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """What remains of the findings, and what was taken away with the reason.

    Args:
        findings: of all rules.
        comments: the suppressions in the files that were read.
        settings: of the project.
        asked: ids of the rules that were asked, and of what no rule reads; a suppression of another
            cannot be called unused.

    Returns:
        The findings that count, those about the suppressions themselves among them; and the
        suppressed ones.
    """
    kept, suppressed, used = [], [], set()
    for finding in findings:
        reason = settings.reason_to_leave(finding.rule, finding.place.path)
        for number, comment in enumerate(comments):
            if comment.covers(finding):
                used |= {(number, finding.rule)}
                reason = reason or comment.reason
        if reason:
            suppressed.append((finding, reason))
        else:
            kept.append(finding)
    asked = set(asked)
    about = (f for f in _about(comments, used, asked) if f.rule in asked)
    for finding in about:
        if reason := settings.reason_to_leave(finding.rule, finding.place.path):
            suppressed.append((finding, reason))
        else:
            kept.append(finding)
    return kept, suppressed


def _about(
    comments: Sequence[Suppression], used: set[tuple[int, str]], asked: set[str]
) -> Iterator[Finding]:
    """Findings about the suppressions themselves."""
    known = {*UNREAD, *(rule.id for rule in builtin())}
    for number, comment in enumerate(comments):
        warning = Finding(
            rule=UNUSED,
            severity="warning",
            category="not_a_failure",
            phase="unknown",
            place=comment.place,
            message="",
            consequence="It would hide the next finding of this rule.",
            fix="Remove it.",
        )
        for rule in comment.rules:
            if rule not in known:
                yield replace(
                    warning,
                    message=f"No rule is called {rule}, so nothing is suppressed.",
                    consequence="The finding that it was meant to suppress is reported.",
                    fix="Use the name of a rule that `epochzero check --rules` lists.",
                )
            elif rule in asked and (number, rule) not in used:
                yield replace(warning, message=f"{rule} finds nothing here to suppress.")
        if not comment.reason or not comment.rules:
            missing = "reason" if comment.rules else "rule"
            yield replace(
                warning,
                rule=WITHOUT_REASON,
                message=f"The suppression names no {missing}, so nothing is suppressed.",
                consequence="The findings that it was meant to suppress are reported.",
                fix="Write # epochzero: ignore[rule-id], followed by the reason why the finding may stay.",
            )
