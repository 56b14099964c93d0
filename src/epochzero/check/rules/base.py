"""What a rule is: one file, with what it must catch and what it must leave alone.

The module of a rule has one public name, ``RULE``. The tests run each rule's own examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from epochzero.check.findings import Finding, Unknown
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target

__all__ = ["CannotTell", "Case", "Rule"]


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
        id: ``path-not-found``; also what ``--select`` and suppressions name.
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
    """

    id: str
    title: str
    category: str
    why: str
    fix: str
    source: str
    check: Callable[[Program, Target], Iterable[Finding | Unknown]]
    catches: tuple[Case, ...]
    leaves: tuple[Case, ...]
    beside: Callable[[Program, Target], AbstractContextManager[None]] | None = None
    general: bool = False
