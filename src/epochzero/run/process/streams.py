"""The standard streams of the job: what each is, and where what comes out of it goes.

Input that is no terminal is the job's own: a file, a pipe or nothing, untouched by us. Output goes
through a pipe or the job's terminal, so that it can be kept. Where both outputs go to the same place, they share a
pipe, which keeps their order.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from epochzero.run.process.terminal import Terminal, terminals

OnOutput = Callable[[str, bytes], None]

_NAMES = {1: "stdout", 2: "stderr"}
_CHUNK = 1 << 18
_PIPE_BYTES = 1 << 20
_REST_S = 0.01
"""A wake-up for each short line of a pipe would cost more than the line; much output never waits."""
_LITTLE = 1 << 14
# Long enough for a busy machine. Only output that was written before is waited for, so that a stream that
# never rests does not delay the other.
_PATIENCE_S = 0.3
_PAUSE_S = 0.0005


class Streams:
    """What the job is given for its standard streams.

    Attributes:
        job: its descriptor for each stream; a stream that is not there is closed.
        terminal: its pseudo terminal, where it has one.
    """

    def __init__(
        self, closed: frozenset[int], on_output: OnOutput, problem: Callable[[str], None]
    ) -> None:
        """Makes pipes and terminal.

        Args:
            closed: the streams that the job is to have closed.
            on_output: takes each piece of output with the name of its stream.
            problem: called with a sentence when output can no longer be passed on.
        """
        self._on_output = on_output
        self._problem = problem
        self.job: dict[int, int] = {}
        self.pumps: list[Pump] = []
        outside = terminals() - closed
        typed = {0, 1} <= outside
        self.terminal = _terminal(outside, typed)
        if 0 not in closed:
            self.job[0] = self.terminal.slave if self.terminal and typed else 0
        shown = outside & {1, 2} if self.terminal else frozenset[int]()
        if self.terminal and shown:
            self._pump(self.terminal.master, min(shown), rest=0.0)
        for stream in shown:
            assert self.terminal is not None
            self.job[stream] = self.terminal.slave
        if 1 not in closed | shown:
            self.job[1] = self._pipe(1)
        if 2 not in closed | shown:
            shared = 1 in self.job and 1 not in shown and os.path.sameopenfile(1, 2)
            self.job[2] = self.job[1] if shared else self._pipe(2)

    def given(self) -> None:
        """The job has its ends; ours of them are closed, and output begins to flow."""
        for descriptor in {*self.job.values()} - {0}:
            os.close(descriptor)
        if len(self.pumps) == 2:
            output, errors = sorted(self.pumps, key=lambda pump: pump.name == "stderr")
            errors.after = output
        for pump in self.pumps:
            pump.start()

    def _pipe(self, stream: int) -> int:
        source, sink = os.pipe()
        with suppress(OSError, AttributeError):
            fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._pump(source, stream, rest=_REST_S)
        return sink

    def _pump(self, source: int, stream: int, *, rest: float) -> None:
        self.pumps.append(Pump(source, stream, self._on_output, self._problem, rest))


def _terminal(outside: frozenset[int], typed: bool) -> Terminal | None:
    """None also where the system has none left: the job runs without one."""
    if not outside & {1, 2}:
        return None
    with suppress(OSError):
        return Terminal(0 if typed else min(outside & {1, 2}), typed=typed)
    return None


class Pump(threading.Thread):
    """Passes on one stream of output, byte for byte and at once, or as soon as a person could see it.

    Attributes:
        writing: whether it waits for the reader outside.
        after: the stream that is heard first, where both have something: a program prints how far it is, and
            then why it fails. Which came first two pipes do not tell.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        on_output: OnOutput,
        problem: Callable[[str], None],
        rest: float,
    ) -> None:
        # A reader outside that never reads must not hold the process.
        super().__init__(name=_NAMES[sink], daemon=True)
        self.writing = False
        self.after: Pump | None = None
        self._hearing = threading.Lock()
        self._read = 0
        self._source = source
        self._sink: int | None = sink
        self._on_output = on_output
        self._problem = problem
        self._rest = rest

    def run(self) -> None:
        """Until the job has closed the stream, or nobody reads it outside."""
        # The system says so when the last end of a terminal is closed.
        with suppress(OSError):
            while data := self._heard():
                self.writing = True
                goes_on = self._pass_on(data)
                self.writing = False
                if not goes_on:
                    break
                if len(data) < _LITTLE:
                    time.sleep(self._rest)
        # The job's next write fails, as it would without us.
        os.close(self._source)

    def _heard(self) -> bytes:
        """What the job writes next; empty at the end."""
        _wait_for_data(self._source)
        if self.after is not None:
            self.after.caught_up()
        with self._hearing:
            if data := os.read(self._source, _CHUNK):
                self._on_output(self.name, data)
                self._read += len(data)
            return data

    def caught_up(self) -> None:
        """Waits, for a moment at most, until everything is read that the job has written so far."""
        with self._hearing:
            if not self.is_alive():
                return
            written = self._read + _unread(self._source)
        until = time.monotonic() + _PATIENCE_S
        while self._read < written and self.is_alive() and time.monotonic() < until:
            time.sleep(_PAUSE_S)

    def _pass_on(self, data: bytes) -> bool:
        """False when the reader outside has gone."""
        rest = memoryview(data)
        while rest and self._sink is not None:
            try:
                rest = rest[os.write(self._sink, rest) :]
            except BlockingIOError:
                # Somebody who shares our terminal or pipe has set it so.
                select.select((), (self._sink,), ())
            except BrokenPipeError:
                return False
            except OSError as error:
                reason = os.strerror(error.errno or errno.EIO)
                self._problem(f"{self.name} is stored but no longer passed on: {reason}")
                self._sink = None
        return True


def _unread(descriptor: int) -> int:
    """How many bytes can be read at once; 0 if the system does not say."""
    with suppress(OSError):
        return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
    return 0


def _wait_for_data(descriptor: int) -> None:
    """Waits until there is something to read, or the stream has ended."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll()
