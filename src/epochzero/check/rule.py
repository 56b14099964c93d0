"""What a rule is: one file, with examples that it must find and examples that it must ignore.

The module of a rule has one public name, ``RULE``. The tests run the examples of each rule.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeAlias

from epochzero.check.findings import Claim, Finding, Severity, SourceLocation, Unknown
from epochzero.check.program.events import CertainError, Situation
from epochzero.check.program.events import argument as argument
from epochzero.check.program.events import guarded as guarded
from epochzero.check.program.model import Module, Program
from epochzero.check.program.reachability import Reach
from epochzero.check.program.syntax import code_of
from epochzero.check.rule_examples import Case, examples
from epochzero.check.target.model import Target
from epochzero.check.view.job import JobView

Claims: TypeAlias = Iterable[Claim | Unknown]
"""The results of a rule."""


class CannotTell(Exception):  # noqa: N818 -- no error: the answer is UNKNOWN
    """A rule cannot decide; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        category: category of the predicted failures, from the taxonomy.
        why: what happens and why it is noticed late; a few sentences.
        fix: what to do; claims that know more than this have their own.
        source: a study, documentation or issue that shows that it happens.
        check: yields findings and undecided questions.
        examples: the text of cases that must give a finding at the marked line, and of cases that must give none,
            as `rule_examples.examples` describes. Only the tests and `epochzero explain` parse them.
        further_cases: cases that a text cannot express, such as files without an end of line.
        background: starts work in another process while rules run; this rule collects the result.
        general: yields to another rule that reports the same error at the same line.
        title: one line that states what goes wrong: the first line of the module's docstring; set by the catalogue.
        id: name of the file with dashes, such as ``path-not-found``; set by the catalogue, used by
            ``--select`` and suppressions.
    """

    category: str
    why: str
    fix: str
    source: str
    check: Callable[[JobView], Claims]
    examples: str
    further_cases: tuple[Case, ...] = ()
    background: Callable[[JobView], AbstractContextManager[None]] | None = None
    general: bool = False
    title: str = ""
    id: str = ""

    @property
    def cases(self) -> tuple[Case, ...]:
        """All cases.

        Raises:
            ValueError: an example does not apply; names the rule.
        """
        try:
            return (*examples(self.examples), *self.further_cases)
        except ValueError as error:
            raise ValueError(f"{self.id}: {error}") from error

    def findings(self, view: JobView) -> Iterator[Finding | Unknown]:
        """Findings with the id of the rule, and the questions that it could not decide."""
        for answer in self.check(view):
            yield (
                answer.of(self.id, self.category, self.fix) if isinstance(answer, Claim) else answer
            )


def claim_at(
    at: Situation,
    *,
    message: str,
    consequence: str,
    fix: str = "",
    severity: Severity | None = None,
    category: str = "",
) -> Claim:
    """A claim about an event: an error if the event is certain, unless a severity is given.

    In a thread it is a warning: only the thread ends, and the job continues without it.
    """
    return Claim(
        severity="warning" if at.aside else severity or ("error" if at.certain else "warning"),
        category=category,
        phase=at.phase,
        place=at.place,
        message=message,
        consequence=consequence,
        fix=fix,
        via=at.via,
    )


def claim_at_start(
    place: SourceLocation,
    *,
    message: str,
    consequence: str,
    fix: str = "",
    severity: Severity = "error",
    via: tuple[SourceLocation, ...] = (),
    category: str = "",
) -> Claim:
    """A claim about how the job starts, or about what prevents it from starting."""
    return Claim(
        severity=severity,
        category=category,
        phase="initialization",
        place=place,
        message=message,
        consequence=consequence,
        fix=fix,
        via=via,
    )


def failures(
    program: Program, *kinds: str, reported: Container[tuple[str, int]] = ()
) -> Iterator[CertainError]:
    """Events that certainly fail in one of these ways, one per line of code.

    Events under an unknown condition are omitted: the condition may protect the job from them.

    Args:
        program: program to inspect.
        kinds: kinds of `CertainError`.
        reported: paths and lines that the rule has reported already.
    """
    if any(problem.fatal for parsed in program.parsed for problem in parsed.problems):
        return  # The parser of the command line ends the job first.
    reach = Reach.of(program)
    seen: set[tuple[str, int]] = set()
    for failure in program.failures:
        where = failure.at.place.path, failure.at.place.line
        if failure.kind not in kinds or where in seen:
            continue
        # How a library calls a function of the job is known; that it calls it is likely.
        if not failure.at.certain and (
            failure.kind != "arguments" or reach.severity(failure.at) != "error"
        ):
            continue
        seen.add(where)
        if where not in reported:
            yield failure


def claim_failure(
    failed: CertainError, *, message: str, fix: str = "", category: str = ""
) -> Claim:
    """A claim about an event that certainly fails."""
    return claim_at(
        failed.at,
        category=category,
        severity="error",
        message=message,
        consequence=f"{failed.error}: {failed.message}".removesuffix(": "),
        fix=fix,
    )


def failure_check(
    *kinds: str, message: Callable[[CertainError], str], fix: str = ""
) -> Callable[[JobView], Claims]:
    """The check of a rule that reports events that certainly fail in one of these ways.

    Args:
        kinds: kinds of `CertainError`.
        message: what is wrong with an event.
        fix: what to do; by default what the event knows.
    """

    def check(view: JobView) -> Claims:
        for failed in failures(view.program, *kinds):
            yield claim_failure(failed, message=message(failed), fix=fix or failed.fix)

    return check


def at_keyword(program: Program, at: Situation, keyword: str) -> Situation:
    """The circumstances of a call, at the line of one of its keywords if the source has it."""
    module = program.by_path.get(at.place.path)
    for call in code_of(module).of(ast.Call) if module is not None else ():
        if (call.lineno, call.col_offset + 1) == (at.place.line, at.place.column):
            for node in call.keywords:
                if node.arg == keyword and module is not None:
                    return replace(at, place=module.place(node))
    return at
