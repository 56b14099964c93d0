"""Who does the work: processes of this machine, or a Ray cluster. Both start calls, and say which have ended.

A worker that is lost loses its call alone, and the caller hears which.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib import import_module
from multiprocessing import connection, forkserver, get_context, parent_process
from threading import Thread
from types import ModuleType
from typing import Any, Protocol

from epochzero.errors import InputError

ENGINES = ("local", "ray")
ATTEMPTS_TO_START = 6
_NOT_STARTED = (BrokenProcessPool, EOFError, OSError)
"""What is raised where a process has ended; the second and third where what it would be forked from has."""
PAUSE_S = 0.1
"""Before the second attempt, and so much longer before each later one: what was killed takes time to end."""


class WorkerLostError(Exception):
    """The worker ended in the middle of a call."""


class Engine(Protocol):
    """Runs calls in other processes.

    Attributes:
        workers: how many calls run at a time; no more may be started.
    """

    workers: int

    def start(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Starts a call; a handle of it, which can be hashed."""

    def ended(self, handles: Collection[Any]) -> Collection[Any]:
        """Those that have ended; waits until one has."""

    def result(self, handle: Any) -> Any:
        """What an ended call gave.

        Raises:
            WorkerLostError: its worker is gone.
        """

    def close(self) -> None:
        """Ends the workers."""


def opened(
    name: str,
    workers: int | None = None,
    address: str | None = None,
    *,
    ready: str = "",
    needs: str = "",
    once: bool = False,
) -> Engine:
    """An engine by its name.

    Args:
        name: of `ENGINES`.
        workers: as many as there are cores when None.
        address: of a Ray cluster; one of this machine is started when None.
        ready: a module that makes at import what all calls need, and no threads; processes of this
            machine find it made.
        needs: a module that these import at their start, whatever threads it makes.
        once: each call has a process of its own, so that its memory is given back.

    Raises:
        InputError: Ray is not installed, or the cluster does not answer.
    """
    if name == "ray":
        return RayEngine(workers, address, once=once)
    return LocalEngine(workers, ready=ready, needs=needs, once=once)


class LocalEngine:
    """Processes of this machine, each by itself, so that the end of one is no other's.

    Args:
        workers: as many as there are cores when None.
        ready, needs, once: as of `opened`.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        ready: str = "",
        needs: str = "",
        once: bool = False,
    ) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._needs = needs
        self._once = once
        # Not forked from this process: threads, such as those of pyarrow, do not survive that.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([ready] if ready else [])
        forkserver.ensure_running()
        self._idle = [self._process() for _ in range(self.workers)]
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}

    def start(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Starts a call in an idle process; one that has ended meanwhile is replaced.

        Raises:
            InputError: no process can be started.
        """
        for attempt in range(ATTEMPTS_TO_START):
            time.sleep(attempt * PAUSE_S)
            process = self._idle.pop()
            try:
                handle = process.submit(function, *arguments)
            except _NOT_STARTED:
                self._replace(process)
                continue
            self._busy[handle] = process
            return handle
        raise InputError("worker processes exit as soon as they start; is memory exhausted?")

    def ended(self, handles: Collection[Future[Any]]) -> Collection[Future[Any]]:
        """Those that have ended; waits until one has."""
        return wait(handles, return_when=FIRST_COMPLETED).done

    def result(self, handle: Future[Any]) -> Any:
        """What an ended call gave.

        Raises:
            WorkerLostError: its process is gone.
        """
        process = self._busy.pop(handle)
        try:
            given = handle.result()
        except BrokenProcessPool as error:
            self._replace(process)
            raise WorkerLostError from error
        except BaseException:
            self._release(process)
            raise
        self._release(process)
        return given

    def _release(self, process: ProcessPoolExecutor) -> None:
        if self._once:
            self._replace(process)
        else:
            self._idle.append(process)

    def _replace(self, process: ProcessPoolExecutor) -> None:
        process.shutdown(wait=False)
        self._idle.append(self._process())

    def _process(self) -> ProcessPoolExecutor:
        process = ProcessPoolExecutor(1, self._context, _begin_worker)
        if self._needs:
            with suppress(*_NOT_STARTED):  # The first call finds out.
                process.submit(_import, self._needs)
        return process

    def close(self) -> None:
        """Ends the processes; calls that have begun are waited for."""
        for process in (*self._idle, *self._busy.values()):
            process.shutdown(cancel_futures=True)


def _import(name: str) -> None:
    import_module(name)


def _begin_worker() -> None:
    """An interruption is for who waits for us; without whom there is nothing left to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)


class RayEngine:
    """Tasks of Ray, one core each.

    Args:
        workers: how many at a time; as many as the cluster has cores when None.
        address: of the cluster; one of this machine is started, and ended, when None.
        once: as of `opened`.

    Raises:
        InputError: Ray is not installed, or the cluster does not answer.
    """

    def __init__(
        self, workers: int | None = None, address: str | None = None, *, once: bool = False
    ) -> None:
        self._ray = _ray()
        self._on_sigterm = signal.getsignal(signal.SIGTERM)
        quiet = {"include_dashboard": False, "num_cpus": workers} if address is None else {}
        try:
            self._ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **quiet,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"Ray at {address or 'this machine'} does not respond: {reason}"
            ) from error
        self.workers = workers or int(self._ray.cluster_resources().get("CPU", 1))
        # Ray would begin a call again by itself, whatever ended its worker, and say nothing.
        self._call = self._ray.remote(max_retries=0, num_cpus=1, max_calls=int(once))(_call)

    def start(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Starts a call somewhere in the cluster."""
        return self._call.remote(function, *arguments)

    def ended(self, handles: Collection[Any]) -> Collection[Any]:
        """Those that have ended; waits until one has."""
        ready, _ = self._ray.wait(list(handles), num_returns=1)
        return list(ready)

    def result(self, handle: Any) -> Any:
        """What an ended call gave.

        Raises:
            WorkerLostError: its process or its node is gone.
        """
        errors = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except errors.RayTaskError as error:
            raise error.cause from error
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        ) as error:
            raise WorkerLostError from error

    def close(self) -> None:
        """Leaves the cluster; ends one that was started here."""
        self._ray.shutdown()
        # Ray leaves its own handler behind, which ends a process that may have other plans.
        with suppress(ValueError):  # Only the main thread may; elsewhere Ray has not set it either.
            signal.signal(signal.SIGTERM, self._on_sigterm)


def _ray() -> ModuleType:
    try:
        return import_module("ray")
    except ImportError as error:
        raise InputError("The engine ray requires Ray: pip install 'epochzero[ray]'") from error


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
