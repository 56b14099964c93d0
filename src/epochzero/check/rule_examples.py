"""The examples of a rule: small jobs, written as text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent

__all__ = ["Case", "examples"]

_CASE = re.compile(r"^----\n", re.MULTILINE)
_FILE = re.compile(r"^==> (.+) <==\n", re.MULTILINE)
_MARK = re.compile(r"  # <-$", re.MULTILINE)
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


def examples(text: str, *, begin: str = "") -> tuple[Case, ...]:
    r"""The cases in a text, which are separated by lines ``----``.

    A case is the content of ``train.py``, behind the lines of ``begin``. Other files follow, each after a line with its name, as
    ``head`` prints several files; ``target.toml`` is the target. ``# <-`` marks the line of the
    expected finding. A first line with ``$`` is the command, with variables of the environment
    before it; without one, ``python train.py`` runs. ``\ No newline at end of file`` has the
    meaning that it has in a diff.

    >>> examples('''
    ...     $ SEED=1 python train.py --steps 8
    ...     import os
    ...     print(open("steps.json").read())  # <-
    ...     ==> target.toml <==
    ...     gpus = 1
    ... ''')[0].line
    2
    """
    return tuple(_case(begin + part) for part in _CASE.split(dedent(text).removeprefix("\n")))


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
