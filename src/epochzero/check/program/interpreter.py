"""The interpreter: reads the program of a job as a whole without running it."""

from __future__ import annotations

import ast

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.launch.model import Job
from epochzero.check.program import library
from epochzero.check.program.calls import Calls
from epochzero.check.program.frames import CallFrame, LimitReached
from epochzero.check.program.heap import JobModule, Scope
from epochzero.check.program.model import Program
from epochzero.check.program.statements import Statements
from epochzero.check.target.model import Target


class Interpreter(Statements, Calls):
    """An abstract interpreter of the job's own modules.

    It walks what Python would execute, from the entry point, with abstract values. Both branches of an unknown
    condition are walked; a loop with unknown iterations is walked once. Libraries are not simulated, but the
    functions of the job that they call are walked.
    """

    def read(self) -> Program:
        """Walk the program.

        Raises:
            InputError: the entry point does not exist or cannot be read.
        """
        entry = self.modules.entry()
        opened = JobModule("__main__", {}, entry)
        self.opened["__main__"] = opened
        start = SourceLocation(entry.path, 1)
        try:
            self.run_module(opened, ())
            self._leftover_loaders(opened)
        except LimitReached:
            reason = "the program is too large to be followed to its end"
            self.unknowns[Unknown("the rest of the program", reason, start)] = None
        except RecursionError:
            reason = "it is nested too deep"
            self.unknowns[Unknown("the rest of the program", reason, start)] = None
        except Exception as error:
            reason = f"following it failed: {type(error).__name__}: {error}"
            self.unknowns[Unknown("the rest of the program", reason, start)] = None
        return Program(
            self.job,
            dict(self.modules.loaded),
            self.recording.events(),
            self.options,
            (*self.unknowns, *self.modules.unknowns),
            tuple(self.command_lines.parsed),
            entered=dict(self.entered),
        )

    def _leftover_loaders(self, opened: JobModule) -> None:
        """Walk the data loaders that were never iterated: unknown code may iterate them."""
        assert opened.module is not None
        self.frame = CallFrame(Scope(opened.names, opened.module))
        for loader in list(self.loaders):
            library.consume(self, loader, ast.Constant(None))


def read_program(job: Job, target: Target) -> Program:
    """Read the program of a job: its modules and, in order, what it does.

    Args:
        job: the job.
        target: the platform; its Python determines the syntax, its environment the variables.

    Raises:
        InputError: the entry point does not exist or cannot be read.
    """
    return Interpreter(job, target).read()
