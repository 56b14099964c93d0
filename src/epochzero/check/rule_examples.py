"""The examples of a rule: small jobs, written as text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent

_CASE = re.compile(r"^----(?: (caught|ignored) if)?\n", re.MULTILINE)
_FILE = re.compile(r"^==> (.+) <==\n", re.MULTILINE)
_MARK = re.compile(r"  # <-$", re.MULTILINE)
_CHANGE = re.compile(r"^@@\n", re.MULTILINE)
_CUT = "\n\\ No newline at end of file\n"
_TARGET = "target.toml"


@dataclass(frozen=True, slots=True)
class Case:
    """A small job on which a rule is tested.

    Attributes:
        files: source and data files by path.
        command: command line.
        environment: variables of the environment in which the command runs.
        target: TOML of the target; by default an empty target, about which nothing is known.
        line: line of the expected finding (in ``path``); 0 if no finding is expected.
        path: file of the expected finding, or ``<command>``.
    """

    files: Mapping[str, str]
    command: tuple[str, ...] = ("python", "train.py")
    environment: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    line: int = 0
    path: str = "train.py"

    @property
    def is_caught(self) -> bool:
        """Whether a finding is expected."""
        return self.line > 0 or self.path == "<command>"


def examples(text: str) -> tuple[Case, ...]:
    r"""The cases in a text, which are separated by lines that start with ``----``.

    A case is the content of ``train.py``. Other files follow, each after a line with its name, as
    ``head`` prints several files; ``target.toml`` is the target. ``# <-`` marks the line of the
    expected finding; without a mark, none is expected. A first line with ``$`` is the command, with
    variables of the environment before it; without one, ``python train.py`` runs.
    ``\ No newline at end of file`` has the meaning that it has in a diff.

    After ``---- caught if`` or ``---- ignored if`` stands what differs from the last case before it that
    is written in full, as a unified diff: ``+`` and ``-`` before lines that are added and removed, a space
    before lines that only show where, ``@@`` between changes in different places. With ``ignored``, marks
    do not count, in the full case and in the diff.

    >>> found, ignored = examples('''
    ...     $ SEED=1 python train.py --steps 8
    ...     import os
    ...     print(open("steps.json").read())  # <-
    ...     ==> target.toml <==
    ...     gpus = 1
    ...     ---- ignored if
    ...      import os
    ...     +open("steps.json", "w").write("8")
    ... ''')
    >>> found.line, ignored.line
    (2, 0)

    Raises:
        ValueError: a diff does not apply, or applies in more than one place.
    """
    first, *others = _CASE.split(dedent(text).removeprefix("\n"))
    full = first
    cases = [_case(first)]
    for kind, part in zip(others[::2], others[1::2], strict=True):
        if kind:
            texts = (full, part) if kind == "caught" else (_MARK.sub("", full), _MARK.sub("", part))
            cases.append(_case(_changed(*texts)))
        else:
            full = part
            cases.append(_case(full))
    return tuple(cases)


def _changed(text: str, diff: str) -> str:
    """A text with the changes of a diff."""
    lines = text.split("\n")
    edits = []
    for change in _CHANGE.split(diff):
        marked = [(line[:1] or " ", line[1:]) for line in change.removesuffix("\n").split("\n")]
        old = [line for mark, line in marked if mark != "+"]
        starts = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        if not old or len(starts) != 1 or not {mark for mark, _ in marked} <= {"+", "-", " "}:
            raise ValueError(f"these lines must occur exactly once in the case:\n{change}")
        new = [line for mark, line in marked if mark != "-"]
        edits.append((starts[0], len(old), new))
    for start, count, new in sorted(edits, reverse=True):
        lines[start : start + count] = new
    return "\n".join(lines)


def _case(text: str) -> Case:
    first, *others = _FILE.split(text)
    command = ""
    if first.startswith("$ "):
        command, _, first = first.removeprefix("$ ").partition("\n")
    given = {"train.py": first} if first else {}
    given |= dict(zip(others[::2], others[1::2], strict=True))
    path, line = "train.py", 0
    files = {}
    for name, content in given.items():
        mark = _MARK.search(content)
        if mark is not None:
            path, line = name, content.count("\n", 0, mark.start()) + 1
            content = content[: mark.start()] + content[mark.end() :]
        files[name] = content.removesuffix(_CUT) if content.endswith(_CUT) else content
    if _MARK.search(command) is not None:
        path, command = "<command>", _MARK.sub("", command)
    words = shlex.split(command) or ["python", "train.py"]
    environment: dict[str, str] = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    target = files.pop(_TARGET, "")
    return Case(files, tuple(words), environment, target, line, path)
