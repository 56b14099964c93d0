"""What a rule is: one file, with what it must catch and what it must leave alone.

The module of a rule has one public name, ``RULE``. The tests run each rule's own examples.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from epochzero.check.code import code_of
from epochzero.check.findings import Claim, Finding, Severity, SourceLocation, Unknown
from epochzero.check.program.events import Failed, Situation
from epochzero.check.program.model import Module, Program
from epochzero.check.reachability import Reach
from epochzero.check.target.model import Target

__all__ = [
    "CannotTell",
    "Case",
    "Claim",
    "Claims",
    "Module",
    "Program",
    "Reach",
    "Rule",
    "Severity",
    "Situation",
    "SourceLocation",
    "Target",
    "Unknown",
    "at_keyword",
    "claim_at",
    "claim_at_start",
    "claim_failure",
    "failures",
    "guarded",
]

Claims: TypeAlias = Iterable[Claim | Unknown]
"""What a rule yields."""


class CannotTell(Exception):  # noqa: N818 -- no error: the answer is UNKNOWN
    """A rule cannot answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """A small job that a rule is tried on.

    Attributes:
        files: source and data files by path; ``train.py`` is run.
        arguments: of the command line.
        target: TOML of the target; an empty target, of which nothing is known, when not given.
        line: at which the finding must be (in ``path``); 0 for cases that must be left alone.
        path: of the file of the finding.
        environment: variables that are set where the command is given.
        command: what is run, before the arguments.
    """

    files: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    target: str = ""
    line: int = 0
    path: str = "train.py"
    environment: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ("python", "train.py")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        title: one line, as a statement of what goes wrong.
        category: of the failures that it predicts, by the taxonomy.
        why: what happens and why it is found late; a few sentences.
        fix: in general; a finding says it with its own values.
        source: a study, documentation or issue that shows that it happens.
        check: finds; yields findings and what it could not tell.
        catches: cases in which it must find something at the given line.
        leaves: cases in which it must find nothing.
        beside: what runs in another process while rules are asked, for this one to hear.
        general: gives way to another rule which tells that the job ends in the same words.
        id: ``path-not-found``, the name of its file, which the catalogue fills in; ``--select`` and suppressions name it.
    """

    title: str
    category: str
    why: str
    fix: str
    source: str
    check: Callable[[Program, Target], Claims]
    catches: tuple[Case, ...]
    leaves: tuple[Case, ...]
    beside: Callable[[Program, Target], AbstractContextManager[None]] | None = None
    general: bool = False
    id: str = ""

    def findings(self, program: Program, target: Target) -> Iterator[Finding | Unknown]:
        """The claims of the rule under its name, and what it could not decide."""
        for answer in self.check(program, target):
            yield answer.of(self.id, self.category) if isinstance(answer, Claim) else answer


def claim_at(
    at: Situation,
    *,
    message: str,
    consequence: str,
    fix: str,
    severity: Severity | None = None,
    category: str = "",
) -> Claim:
    """A claim about an event: an error when the event is certain, unless a severity is given.

    In a thread it is a warning: the thread ends, and the job goes on without it.
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
    fix: str,
    severity: Severity = "error",
    via: tuple[SourceLocation, ...] = (),
    category: str = "",
) -> Claim:
    """A claim about how the job is started, or about what keeps it from starting."""
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


def guarded(at: Situation, *exceptions: type[BaseException]) -> bool:
    """Whether one of the exceptions, or a class above it, is caught around the event."""
    above = {parent.__name__ for one in exceptions for parent in one.__mro__}
    # OSError has older names, and a handler may be written with its module.
    above |= {"IOError", "EnvironmentError"} if "OSError" in above else set()
    return any(name.rpartition(".")[2] in above for name in at.handled)


def failures(
    program: Program, *kinds: str, told: Container[tuple[str, int]] = ()
) -> Iterator[Failed]:
    """What surely fails in one of these ways, each line once.

    What stands under a condition that is not known is left out: the condition may be there to keep
    the job from it.

    Args:
        program: that may fail.
        kinds: of `Failed`.
        told: paths and lines of which the rule has told already.
    """
    if any(problem.fatal for parsed in program.parsed for problem in parsed.problems):
        return  # The parser of the command line has ended the job before.
    reach = Reach.of(program)
    seen: set[tuple[str, int]] = set()
    for one in program.failures:
        where = one.at.place.path, one.at.place.line
        if one.kind not in kinds or where in seen or reach.severity(one.at) != "error":
            continue
        seen.add(where)
        if where not in told:
            yield one


def claim_failure(failed: Failed, *, message: str, fix: str, category: str = "") -> Claim:
    """A claim about something that surely fails."""
    return claim_at(
        failed.at,
        category=category,
        severity="error",
        message=message,
        consequence=f"{failed.error}: {failed.message}".removesuffix(": "),
        fix=fix,
    )


def at_keyword(program: Program, at: Situation, keyword: str) -> Situation:
    """The circumstances of a call, at the line of one of its keywords, where that is written."""
    module = next((one for one in program.modules.values() if one.path == at.place.path), None)
    for call in code_of(module).of(ast.Call) if module is not None else ():
        if (call.lineno, call.col_offset + 1) == (at.place.line, at.place.column):
            for one in call.keywords:
                if one.arg == keyword and module is not None:
                    return replace(at, place=module.place(one))
    return at
