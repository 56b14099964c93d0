"""Parsing in several processes.

Children are plain programs that talk over pipes: unlike those of ``multiprocessing`` they neither
copy a process that has threads nor run its main script again. One that dies takes nothing with it:
its files are tried again one by one, and one that kills twice is read as plain text.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import IO, cast

from epochzero.code.parse import parse, parse_as_text

CHUNK_FILES = 24
CHUNK_BYTES = 1 << 18
QUEUED_CHUNKS = 2
"""Chunks read ahead for each worker: more would only need memory."""
_LENGTH = struct.Struct("<I")
_READY = b"ready"

Job = tuple[int, str, bytes]
"""A file to parse: its number, its path, its content."""


def serve() -> None:
    """What a worker does: files in on standard input, parsed files out on standard output."""
    with open(0, "rb") as questions, open(1, "wb") as answers:
        answers.write(_READY)
        answers.flush()
        while head := questions.read(_LENGTH.size):
            (count,) = _LENGTH.unpack(head)
            # All of the chunk first: the other side does not read before it has written all.
            asked = [(_read(questions), _read(questions)) for _ in range(count)]
            for path, data in asked:
                parsed = parse(data, path.decode("utf-8", "surrogateescape"))
                _write(answers, parsed.to_bytes())
            answers.flush()


def parse_all(jobs: Iterable[Job], workers: int) -> Iterator[tuple[int, bytes]]:
    """Parses files in several processes.

    Args:
        jobs: the files; they are read from as the workers can take more.
        workers: how many processes.

    Yields:
        The number of each file and `Parsed.to_bytes` of it, in the order in which they are done.
    """
    questions: SimpleQueue[list[Job] | None] = SimpleQueue()
    answers: SimpleQueue[list[tuple[int, bytes]] | Exception] = SimpleQueue()
    threads = [
        threading.Thread(target=_drive, args=(questions, answers), daemon=True)
        for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    waiting = 0
    try:
        for chunk in _chunks(jobs):
            questions.put(chunk)
            waiting += 1
            while waiting >= workers * QUEUED_CHUNKS or (waiting and not answers.empty()):
                yield from _result(answers)
                waiting -= 1
        for _ in range(waiting):
            yield from _result(answers)
    finally:
        for _ in threads:
            questions.put(None)


def _result(
    answers: SimpleQueue[list[tuple[int, bytes]] | Exception],
) -> list[tuple[int, bytes]]:
    answer = answers.get()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _chunks(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    chunk: list[Job] = []
    size = 0
    for job in jobs:
        chunk.append(job)
        size += len(job[2])
        if len(chunk) == CHUNK_FILES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _drive(
    questions: SimpleQueue[list[Job] | None],
    answers: SimpleQueue[list[tuple[int, bytes]] | Exception],
) -> None:
    """Keeps one worker busy until there are no more questions."""
    worker = _ParserProcess()
    try:
        while chunk := questions.get():
            try:
                answers.put(worker.parsed(chunk))
            except Exception as error:  # the caller waits for an answer and gets the error
                answers.put(error)
    finally:
        worker.end()


class _ParserProcess:
    """A child that parses; restarted if it has died."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def parsed(self, chunk: Sequence[Job]) -> list[tuple[int, bytes]]:
        """The parsed files of a chunk; by this process itself where no child starts."""
        if not self._ready():
            return [(number, parse(data, path).to_bytes()) for number, path, data in chunk]
        found = self._ask(chunk)
        if found is not None:
            return found
        done: list[tuple[int, bytes]] = []
        for job in chunk:
            alone = self._ask([job]) if self._ready() else None
            if alone is None:
                number, path, data = job
                alone = [(number, parse_as_text(data, path).to_bytes())]
            done += alone
        return done

    def _ready(self) -> bool:
        """Whether there is a child that takes questions."""
        if self._child is None:
            try:
                self._child = _start()
                if cast("IO[bytes]", self._child.stdout).read(len(_READY)) != _READY:
                    self.end()
            except OSError:
                return False
        return self._child is not None

    def _ask(self, chunk: Sequence[Job]) -> list[tuple[int, bytes]] | None:
        """The answers of the child; None when it died over them."""
        child = cast("subprocess.Popen[bytes]", self._child)
        pipe, output = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            pipe.write(_LENGTH.pack(len(chunk)))
            for _, path, data in chunk:
                _write(pipe, path.encode("utf-8", "surrogateescape"))
                _write(pipe, data)
            pipe.flush()
            return [(number, _read(output)) for number, _, _ in chunk]
        except (OSError, EOFError):
            self.end()
            return None

    def end(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            try:
                cast("IO[bytes]", pipe).close()
            except OSError:  # what was still to be written goes nowhere
                continue


def _start() -> subprocess.Popen[bytes]:
    # Isolated, with this process's own search path: else a file of the current folder, which may
    # be the untrusted repository, could pass itself off as a module.
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from epochzero.code.workers import serve; serve()"
    )
    return subprocess.Popen(
        [sys.executable, "-I", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)


def _read(pipe: IO[bytes]) -> bytes:
    head = pipe.read(_LENGTH.size)
    if len(head) != _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError
    return data
