"""Run rules on a program, each and all within a budget of processor time."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.program.model import Program
from epochzero.check.rule import CannotTell, JobView, Rule
from epochzero.check.rules.budget import TimeExceeded, at_most
from epochzero.check.target.model import Target

RULE_S, RULES_S = 10.0, 30.0
"""Seconds of processor time for one rule, and for all rules on one program."""


def run_rules(
    program: Program, target: Target, rules: Sequence[Rule]
) -> Iterator[Finding | Unknown]:
    """The results of all rules; a rule that fails or exceeds its budget does not stop the others."""
    sure = program.job.certain and program.job.complete
    # A fault in a script does not depend on whether and how it runs this program.
    own = {problem.place for problem in program.job.launch_script.problems}
    end = time.process_time() + RULES_S
    view = JobView(program, target)
    with ExitStack() as running:
        for background in dict.fromkeys(
            rule.background for rule in rules if rule.background is not None
        ):
            running.enter_context(background(view))
        for rule in rules:
            seconds = min(RULE_S, end - time.process_time())
            if seconds <= 0:
                reason = f"not run: the preceding rules took {RULES_S:g} s"
                yield Unknown(rule.id, reason, SourceLocation("<command>"))
                continue
            for answer in _answers(rule, view, seconds):
                yield answer if sure or answer.place in own else _softened(answer)


def _answers(rule: Rule, view: JobView, seconds: float) -> list[Finding | Unknown]:
    """The results of a rule within its budget, and why there are no more."""
    results: list[Finding | Unknown] = []
    try:
        with at_most(seconds):
            for answer in rule.findings(view):
                results.append(answer)
        return results
    except TimeExceeded:
        reason = f"stopped after {seconds:.3g} s"
    except CannotTell as error:
        reason = str(error)
    except Exception as error:
        reason = f"the rule failed: {type(error).__name__}: {error}"
    return [*results, Unknown(rule.id, reason, SourceLocation("<command>"))]


def _softened(answer: Finding | Unknown) -> Finding | Unknown:
    """The same finding as a warning: the job may not run, or run with other arguments."""
    return replace(answer, severity="warning") if isinstance(answer, Finding) else answer
