"""Problems of a command line become findings only where they surely are some."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check.findings import Finding, SourceLocation
from epochzero.check.launch.model import Job
from epochzero.check.program.arguments import parse
from epochzero.check.program.model import Program
from epochzero.check.program.parsers.model import OptionSpec, ParserSpec
from epochzero.check.program.values import Constant, External
from epochzero.check.rules import find
from epochzero.check.target.model import Target
from epochzero.check.view.job import JobView

RULES = tuple(
    find(name)
    for name in (
        "argument-choice",
        "argument-missing",
        "argument-type",
        "argument-unknown",
        "arguments-contradict",
    )
)
SPEC = ParserSpec(
    "argparse",
    (
        OptionSpec(
            ("--lr",), {"type": External("builtins.float")}, SourceLocation("train.py", 3, 1)
        ),
        OptionSpec(("--data",), {"required": Constant(True)}, SourceLocation("train.py", 4, 1)),
        OptionSpec(
            ("--amp",), {"action": Constant("store_true")}, SourceLocation("train.py", 5, 1)
        ),
        OptionSpec(
            ("--fp32",), {"action": Constant("store_true")}, SourceLocation("train.py", 6, 1)
        ),
    ),
    exclusive=((2, 3),),
    place=SourceLocation("train.py", 2, 1),
)


def found(argv: str, unsure: frozenset[int] = frozenset()) -> list[tuple[str, int]]:
    """The rules that find something, and the lines: those of the definitions."""
    words = tuple(argv.split())
    job = Job(words, Path("train.py"), "", Path(), unsure=unsure)
    parsed = parse(SPEC, words)
    program = Program(job, {}, (), parsed.values, parsed=(parsed,))
    answers = [
        (rule, one) for rule in RULES for one in rule.findings(JobView(program, Target("there")))
    ]
    assert all(isinstance(one, Finding) and one.rule == rule.id for rule, one in answers)
    findings = [(rule, one) for rule, one in answers if isinstance(one, Finding)]
    assert all(one.place.path == "train.py" and not one.via for _, one in findings)
    return [(rule.id, one.place.line) for rule, one in findings]


@pytest.mark.parametrize(
    ("argv", "rule", "line"),
    [
        ("--lr 1", "argument-missing", 4),
        ("--data d --lr x", "argument-type", 3),
        ("--data d --lrr 1", "argument-unknown", 2),
        ("--data d --amp --fp32", "arguments-contradict", 6),
    ],
)
def test_each_problem_is_found_by_its_rule_and_leads_to_the_definition(
    argv: str, rule: str, line: int
) -> None:
    assert found(argv) == [(rule, line)]


def test_what_the_shell_fills_in_is_not_judged() -> None:
    assert found("--lr $LR --data d", frozenset({1})) == []
    assert found("$MORE --data d", frozenset({0})) == []
    # It may be what is missing.
    assert found("$MORE", frozenset({0})) == []
    # What stands beside it may still be wrong.
    assert found("--data $D --lr x", frozenset({1})) == [("argument-type", 3)]


def test_a_program_without_a_parser_is_left_alone() -> None:
    program = Program(Job(("--lr", "x"), None, "m", Path()), {}, ())
    assert [one for rule in RULES for one in rule.findings(JobView(program, Target("there")))] == []
