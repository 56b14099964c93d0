"""Messages of the analyser ruff about Python source: undefined names, format strings with wrong arguments.

ruff runs as a child process on copies of the text that check has read. It sees no settings, variables and comments of the
job.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ruff import find_ruff_bin

from epochzero.check.program.model import Module
from epochzero.check.rule import CannotTell
from epochzero.file_access import unconfined
from epochzero.scratch import scratch_directory

CODES = {
    "F404": r"from __future__",
    "F406": r"import \*",
    "F407": r"feature `(.+)`",
    "F501": r"invalid format string: (.+)",
    "F502": r"expected mapping",
    "F505": r"placeholder\(s\): (.+)",
    "F506": r"mixed positional and named",
    "F507": r"(\d+) placeholder\(s\) but (\d+) substitution",
    "F509": r"format character `?'?(.+?)'?`?$",
    "F521": r"invalid format string: (.+)",
    "F524": r"placeholder\(s\): (.+)",
    "F525": r"mixes automatic and manual",
    "F622": r"starred expressions",
    "F701": r"outside loop",
    "F702": r"not properly in loop",
    "F704": r"`(\w+)` statement",
    "F706": r"outside of a function",
    "F707": r"not the last exception handler",
    "F821": r"Undefined name `(.+?)`",
    "F823": r"Local variable `(.+?)`",
}
"""The ruff rules whose violation certainly raises, and how each names its values."""
LONGEST_S = 20.0
_FIRST_PYTHON, _LAST_PYTHON = (3, 7), (3, 14)
"""Of those that ruff knows by name."""
# Only ruff sees the names of the copies, which do not show whether a module is the `__init__` of a package.
_BUILTINS = ("__path__",)


@dataclass(frozen=True, slots=True)
class Message:
    """A message of ruff.

    Attributes:
        code: of its rule, such as ``F821``.
        values: that it names.
        module: in which it is.
        line: from 1.
        column: from 0, in bytes, as ``ast`` counts.
    """

    code: str
    values: tuple[str, ...]
    module: Module
    line: int
    column: int


class RuffProcess:
    """A ruff process, which reads modules while other work is done.

    Args:
        modules: the modules to read.
        python: the version for which they are written; None for this one.
    """

    def __init__(self, modules: Sequence[Module], python: tuple[int, ...] | None) -> None:
        self._modules = modules
        self._opened = ExitStack()
        self._process: subprocess.Popen[bytes] | OSError
        try:
            name = self._opened.enter_context(scratch_directory())
            for number, module in enumerate(modules):
                text = module.text.encode("utf-8", "replace")
                Path(name, f"{number}.py").write_bytes(text)
            self._process = _started(name, python or sys.version_info[:2])
        except OSError as error:
            self._process = error

    def __enter__(self) -> RuffProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process, even if its messages were not read."""
        if isinstance(self._process, subprocess.Popen):
            self._process.kill()
            self._process.communicate()
        with unconfined():
            self._opened.close()

    def messages(self) -> list[Message]:
        """Return its messages.

        Raises:
            CannotTell: ruff does not exist or fails, or its output cannot be read.
        """
        if isinstance(self._outcome, Exception):
            reason = str(self._outcome).partition("\n")[0]
            raise CannotTell(f"the analyser ruff does not work: {reason}") from self._outcome
        return self._outcome

    @cached_property
    def _outcome(self) -> list[Message] | Exception:
        try:
            with self:
                answer = json.loads(self._answer())
            return [_message(value, self._modules) for value in answer if value["code"] in CODES]
        except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
            return error

    def _answer(self) -> bytes:
        if isinstance(self._process, OSError):
            raise self._process
        answer, wrong = self._process.communicate(timeout=LONGEST_S)
        if status := self._process.returncode:
            raise ValueError(wrong.decode("utf-8", "replace").strip() or f"status {status}")
        return answer


def _started(folder: str, python: tuple[int, ...]) -> subprocess.Popen[bytes]:
    version = min(max(python[:2], _FIRST_PYTHON), _LAST_PYTHON)
    command = [
        find_ruff_bin(),
        "check",
        "--isolated",
        "--no-cache",
        "--ignore-noqa",
        "--no-respect-gitignore",
        "--quiet",
        "--exit-zero",
        "--output-format=json",
        f"--target-version=py{version[0]}{version[1]}",
        f"--select={','.join(CODES)}",
        f"--config=builtins = {json.dumps(_BUILTINS)}",
        ".",
    ]
    # Variables such as RUFF_OUTPUT_FILE would be read as options.
    return subprocess.Popen(
        command,
        cwd=folder,
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _message(answer: dict[str, Any], modules: Sequence[Module]) -> Message:
    code = answer["code"]
    found = re.search(CODES[code], answer["message"])
    if found is None:
        raise ValueError(f"{code} says {answer['message']!r}")
    module = modules[int(Path(answer["filename"]).stem)]
    line, character = answer["location"]["row"], answer["location"]["column"]
    before = module.lines[line - 1][: character - 1]
    return Message(code, found.groups(), module, line, len(before.encode("utf-8", "replace")))
