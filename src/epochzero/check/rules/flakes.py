"""Messages of ruff about the job's modules, for the code that the job reaches.

ruff knows Python's scopes; rules use those of its messages that certainly lead to an exception.
It reads whole files, including functions that the job never calls; those are ignored.
"""

import ast
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from epochzero.check.program.events import Situation
from epochzero.check.rule import Claim, JobView, Module, Program, claim_at
from epochzero.check.rules.ruff import RuffProcess


@dataclass(frozen=True, slots=True)
class Flake:
    """A message of ruff about code that the job reaches.

    Attributes:
        code: code of the ruff rule, such as ``F821``.
        values: names in the message.
        module: module of the code.
        column: column from 0, as in ``ast``.
        at: its circumstances.
    """

    code: str
    values: tuple[str, ...]
    module: Module
    column: int
    at: Situation

    def claim(self, message: str, consequence: str, fix: str) -> Claim:
        """A claim about the message."""
        return claim_at(
            self.at,
            severity="error" if self.at.certain else "warning",
            message=message,
            consequence=consequence,
            fix=fix,
        )


@contextmanager
def reading(view: JobView) -> Iterator[None]:
    """Run ruff on the program in another process, for later calls of `flakes`."""
    with _asked(view.program, view.target.python):
        yield


@lru_cache(maxsize=1)  # Several rules query the same program in succession.
def _asked(program: Program, python: tuple[int, ...] | None) -> RuffProcess:
    return RuffProcess(
        [module for module in program.modules.values() if module.tree is not None], python
    )


def flakes(view: JobView, codes: Container[str]) -> Iterator[Flake]:
    """The messages with these codes about code that the job reaches.

    Raises:
        CannotTell: ruff is not available.
    """
    for message in _asked(view.program, view.target.python).messages():
        if message.code not in codes:
            continue
        node = ast.Pass(lineno=message.line, col_offset=message.column)
        at = view.reach.may(message.module, node)
        if at is not None and not {"Exception", "BaseException"} & at.handled:
            yield Flake(message.code, message.values, message.module, message.column, at)
