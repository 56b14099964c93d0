"""Diagnoses logs in worker processes, fairly among teams and within a budget of time and memory per log."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, reduction
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from tempfile import TemporaryFile
from typing import IO, Any

from epochzero import compiled
from epochzero.diagnose import Diagnosis, Facts
from epochzero.number_formats import size as size_text
from epochzero.web.diagnosis_worker import Budget, Extent, LogRequest, serve
from epochzero.web.fair_queue import FairQueue

_READY = "epochzero.web.diagnosis_ready"
_SHORT_BYTES = 256 << 10
"""A log of this size, however bad, takes less than a second; it is held in memory."""
_STEP_S = 0.25
"""Logs of one request are processed for this long before other teams get a turn."""
_MOST_WORKERS = 8
_SLOWEST = 10
"""A worker that gets less than this fraction of a processor is considered hung."""
_HUNG_S = 60.0
"""No worker is considered hung earlier: a busy machine can leave a process without a processor for seconds."""


@dataclass(frozen=True, slots=True)
class DiagnosedLog:
    """The diagnosis of a log, and the redacted log as an open file."""

    diagnosis: Diagnosis
    log: IO[bytes]


@dataclass(slots=True)
class LogTask:
    """The logs of one request, with known facts about their jobs, and the sizes of the logs."""

    team: str
    logs: Sequence[tuple[IO[bytes], Facts]]
    sizes: Sequence[int]
    future: Future[Sequence[DiagnosedLog]] = field(default_factory=Future)
    found: list[DiagnosedLog] = field(default_factory=list)

    @property
    def is_short(self) -> bool:
        """Whether the next log is short."""
        return self.sizes[len(self.found)] <= _SHORT_BYTES


class DiagnosisPool:
    """The worker processes, each controlled by a thread.

    Args:
        folder: directory for redacted logs while they are stored.
        budget: of each log.
    """

    def __init__(self, folder: str, budget: Budget) -> None:
        compiled.share()
        count = max(2, min(_MOST_WORKERS, os.cpu_count() or 2))
        self._queue: FairQueue[LogTask] = FairQueue(count)
        self._workers = [_DiagnosisProcess(folder, budget) for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name="diagnosis", daemon=True)
            for number in range(count)
        ]
        self._started = threading.Lock()

    def prepare(self) -> None:
        """Starts the worker processes; otherwise each starts with its first log."""
        for worker in self._workers:
            worker.start()

    def submit(
        self, team: str, logs: Sequence[tuple[IO[bytes], Facts]]
    ) -> Future[Sequence[DiagnosedLog]]:
        """Queues the logs of one request; the result contains them in order.

        The future raises `InputError` if a log is not text, and `OSError` if the disk is full.
        """
        with self._started:
            for thread in self._threads:
                if thread.ident is None:
                    thread.start()
        task = LogTask(team, logs, [log.seek(0, io.SEEK_END) for log, _ in logs])
        if not logs:
            task.future.set_result(())
        else:
            self._queue.put(task)
        return task.future

    def stop(self) -> None:
        """Stops immediately; requests in progress fail, and their senders repeat them."""
        for task in self._queue.close():
            task.future.cancel()
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        for worker in self._workers:
            worker.discard()

    def _work(self, number: int) -> None:
        worker = self._workers[number]
        while (task := self._queue.take(number)) is not None:
            began = time.monotonic()
            try:
                is_done = self._step(worker, task, began)
            except BaseException as error:  # The request must not wait forever.
                is_done = True
                if not task.future.cancelled():
                    task.future.set_exception(error)
            self._queue.done(task, time.monotonic() - began, again=not is_done)

    def _step(self, worker: _DiagnosisProcess, task: LogTask, began: float) -> bool:
        """Processes some logs of a task; returns whether it is done."""
        if not task.future.running() and not task.future.set_running_or_notify_cancel():
            return True
        while True:
            log, facts = task.logs[len(task.found)]
            task.found.append(worker.diagnose(log, facts))
            if len(task.found) == len(task.logs):
                task.future.set_result(task.found)
                return True
            if time.monotonic() - began > _STEP_S:
                return False


class _OverBudgetError(Exception):
    """A worker exceeded a limit."""


@dataclass(frozen=True, slots=True)
class _WorkerAnswer:
    """A diagnosis and the redacted log; None if redacting it exceeded the budget."""

    diagnosis: Diagnosis
    log: IO[bytes] | None


class _DiagnosisProcess:
    """One worker process, which is replaced after it exceeded a limit."""

    def __init__(self, folder: str, budget: Budget) -> None:
        self._folder = folder
        self._budget = budget
        self._process: ForkServerProcess | None = None
        self._channel: Connection | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def start(self) -> Connection:
        """Starts the process unless it is running; returns the channel to it.

        Raises:
            RuntimeError: the worker was stopped.
        """
        with self._lock:
            if self._stopped:
                raise RuntimeError("the service is shutting down")
            if self._channel is None:
                # A new process is ready in milliseconds: it is forked from one that has loaded the signatures.
                context = get_context("forkserver")
                context.set_forkserver_preload([_READY])
                self._channel, other = context.Pipe()
                self._process = context.Process(
                    target=serve, args=(other,), name="diagnosis", daemon=True
                )
                self._process.start()
                other.close()
            return self._channel

    def stop(self) -> None:
        """Kills the process and starts no other. The worker's thread then fails its task and ends."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def diagnose(self, log: IO[bytes], facts: Facts) -> DiagnosedLog:
        """Diagnoses a log; over budget, only its end, and then only from the facts.

        Raises:
            InputError: the log is not text.
            OSError: the disk is full.
            RuntimeError: the worker was stopped, or its processes do not start.
        """
        for extent in Extent:
            try:
                found = self._diagnose(log, facts, extent)
            except _OverBudgetError:
                self.discard()
                continue
            notes = self._note(extent)
            if found.log is None:
                notes += (
                    "The log is not stored: it cannot be redacted within the service's limits.",
                )
            diagnosis = replace(found.diagnosis, notes=found.diagnosis.notes + notes)
            return DiagnosedLog(diagnosis, found.log or io.BytesIO())
        raise RuntimeError("the worker processes of the service exit at once")

    def _note(self, extent: Extent) -> tuple[str, ...]:
        if extent is Extent.WHOLE:
            return ()
        limit = f"{self._budget.seconds:g} s of processor time, {size_text(self._budget.memory)}"
        read = "only its end was read" if extent is Extent.END else "it was not read"
        return (
            f"The whole log cannot be diagnosed within the service's limits ({limit}): {read}.",
        )

    def _diagnose(self, log: IO[bytes], facts: Facts, extent: Extent) -> _WorkerAnswer:
        channel = self.start()
        size = log.seek(0, io.SEEK_END)
        in_memory = size <= _SHORT_BYTES or isinstance(log, io.BytesIO)
        log.seek(0)
        text = log.read() if in_memory else None
        redacted = None if in_memory else TemporaryFile(dir=self._folder)  # noqa: SIM115
        try:
            self._send(channel, LogRequest(text, extent, facts, self._budget), log, redacted)
            diagnosis: Diagnosis = self._receive(channel, self._budget.seconds)
            try:
                seconds = self._budget.redaction_seconds(size)
                stored: bytes = self._receive(channel, seconds)
            except _OverBudgetError:
                self.discard()
                if redacted is not None:
                    redacted.close()
                return _WorkerAnswer(diagnosis, None)
        except BaseException:
            if redacted is not None:
                redacted.close()
            raise
        return _WorkerAnswer(diagnosis, redacted if redacted is not None else io.BytesIO(stored))

    def _send(
        self, channel: Connection, request: LogRequest, log: IO[bytes], redacted: IO[bytes] | None
    ) -> None:
        process = self._process
        assert process is not None
        try:
            channel.send(request)
            if redacted is not None:
                for file in (log, redacted):
                    reduction.send_handle(channel, file.fileno(), process.pid)
        except OSError as error:
            raise _OverBudgetError from error

    def _receive(self, channel: Connection, seconds: float) -> Any:
        """The next response of the process, which may use some processor time for it.

        Raises:
            _OverBudgetError: the process was terminated, or lacks memory or progress.
        """
        try:
            is_hung = not channel.poll(max(_HUNG_S, _SLOWEST * seconds))
            answer = None if is_hung else channel.recv()
        except (EOFError, OSError) as error:
            raise _OverBudgetError from error
        if answer is None or isinstance(answer, MemoryError):
            raise _OverBudgetError
        if isinstance(answer, Exception):
            raise answer
        return answer

    def discard(self) -> None:
        """Ends the process; the next log starts another."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.join()
                self._process.close()
            if self._channel is not None:
                self._channel.close()
            self._process = self._channel = None
