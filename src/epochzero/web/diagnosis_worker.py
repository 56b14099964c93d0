"""A process that diagnoses and redacts logs with limited time and memory.

A log can take minutes (repeated tracebacks, lines built to defeat a pattern) or exhaust memory. Here, it affects only
its own process: the kernel terminates it at its limit of processor time (SIGPROF), and an allocation beyond the limit
of memory fails.
"""

from __future__ import annotations

import io
import os
import threading
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import IO

from epochzero import compiled
from epochzero.diagnose import Diagnoser, Diagnosis, Facts
from epochzero.errors import InputError
from epochzero.logs.source import Log
from epochzero.platform import limit_process
from epochzero.redact import redact_log
from epochzero.web.child_process import exit_with_parent
from epochzero.web.log_redaction import Unfinished, redact_piece

NAME = "output.log"
_END_BYTES = 256 << 10
_BLOCK = 1 << 20
_REDACTED_PER_S = 4 << 20
"""Bytes; a tenth of the measured speed of redaction on the slowest kind of log."""


class Extent(Enum):
    """The part of a log that is diagnosed; less of it after a larger part exceeded the budget."""

    WHOLE = "whole"
    END = "end"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one diagnosis: processor time in seconds, and memory of its process in bytes."""

    seconds: float = 10.0
    memory: int = 1 << 30

    def redaction_seconds(self, size: int) -> float:
        """Processor time to redact a log of some bytes after its diagnosis."""
        return self.seconds + size / _REDACTED_PER_S


@dataclass(frozen=True, slots=True)
class LogRequest:
    """A log to diagnose.

    Attributes:
        text: its bytes; None if two file descriptors follow, of the log and of an empty file for the redacted log.
    """

    text: bytes | None
    extent: Extent
    facts: Facts
    budget: Budget


@cache
def diagnoser() -> Diagnoser:
    """The diagnoser of this process."""
    compiled.use_shared()
    return Diagnoser().prepare()


def serve(channel: Connection) -> None:
    """Processes requests until the channel is closed.

    Each response is a `Diagnosis` followed by the redacted text (empty if it is in the file), or an exception.
    """
    threading.Thread(target=exit_with_parent, daemon=True).start()
    diagnoser()  # The process that this one was forked from may lack it, and a budget is for its log alone.
    while True:
        try:
            request: LogRequest = channel.recv()
            files = [] if request.text is not None else _files(channel)
        except EOFError:
            return
        try:
            _answer(channel, request, files)
        except (InputError, OSError, MemoryError) as error:
            channel.send(error)
        finally:
            limit_process(0.0, request.budget.memory)  # Receiving the next request is not its work.
            for file in files:
                file.close()


def _files(channel: Connection) -> list[IO[bytes]]:
    return [os.fdopen(reduction.recv_handle(channel), mode) for mode in ("rb", "wb")]


def _answer(channel: Connection, request: LogRequest, files: list[IO[bytes]]) -> None:
    log = files[0] if files else io.BytesIO(request.text or b"")
    size = log.seek(0, io.SEEK_END)
    limit_process(request.budget.seconds, request.budget.memory)
    channel.send(_diagnosed(log, size, request))
    limit_process(request.budget.redaction_seconds(size), request.budget.memory)
    redacted = files[1] if files else io.BytesIO()
    _redact(log, redacted)
    redacted.flush()
    channel.send(redacted.getvalue() if isinstance(redacted, io.BytesIO) else b"")


def _diagnosed(log: IO[bytes], size: int, request: LogRequest) -> Diagnosis:
    facts = request.facts
    if request.extent is Extent.WHOLE:
        return _diagnosis(log, facts)
    if request.extent is Extent.NOTHING:
        return _diagnosis(io.BytesIO(), facts)
    skipped = _line_start(log, max(0, size - _END_BYTES))
    log.seek(0)
    lines = _line_count(log, skipped)
    return _shifted(_diagnosis(io.BytesIO(log.read()), facts), lines)


def _diagnosis(log: IO[bytes], facts: Facts) -> Diagnosis:
    return diagnoser().diagnose([Log(NAME, file=log)], facts)


def _line_start(log: IO[bytes], offset: int) -> int:
    """The start of the first line after an offset."""
    log.seek(offset)
    return offset + len(log.readline(_END_BYTES)) if offset else 0


def _line_count(log: IO[bytes], size: int) -> int:
    """Number of lines in the next bytes, which are read."""
    count = 0
    while size > 0 and (block := log.read(min(size, _BLOCK))):
        count += block.count(b"\n")
        size -= len(block)
    return count


def _shifted(found: Diagnosis, lines: int) -> Diagnosis:
    """A diagnosis of the end of a log, with the line numbers of the whole log."""
    root = found.root
    if root is not None and root.line is not None:
        root = replace(root, line=root.line + lines)
    cascade = tuple(replace(c, line=c.line + lines) for c in found.cascade)
    return replace(found, root=root, cascade=cascade)


def _redact(log: IO[bytes], redacted: IO[bytes]) -> None:
    log.seek(0)
    end = Unfinished()
    while block := log.read(_BLOCK):
        text, end = redact_piece(end, block)
        redacted.write(text)
    redacted.write(redact_log(end.held))
