"""Engines that run calls: processes of this machine, or a Ray cluster.

A lost worker loses only its own call, and the caller learns which.
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
from multiprocessing.context import BaseContext
from threading import Thread
from types import ModuleType
from typing import Any, Protocol

from epochzero import compiled
from epochzero.errors import InputError
from epochzero.platform import NAME, usable_cpus

ENGINES = ("local", "ray")
ATTEMPTS_TO_START = 6
_NOT_STARTED = (BrokenProcessPool, EOFError, OSError)
"""Exceptions after a process has ended; the second and third if the fork server has ended."""
PAUSE_S = 0.1
"""Seconds before the second attempt, and additionally before each later one: killed processes take time to end."""


class WorkerLostError(Exception):
    """The worker ended during a call."""


class ProcessEngine(Protocol):
    """Runs calls in other processes.

    Attributes:
        workers: maximum number of concurrent calls.
    """

    workers: int

    def start(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a call; return a hashable handle."""

    def ended(self, handles: Collection[Any]) -> Collection[Any]:
        """Return the calls that have ended; wait until one has."""

    def result(self, handle: Any) -> Any:
        """Return the result of a call that has ended.

        Raises:
            WorkerLostError: its worker was lost.
        """

    def close(self) -> None:
        """Stop the workers."""


def opened(
    name: str,
    workers: int | None = None,
    address: str | None = None,
    *,
    ready: str = "",
    needs: str = "",
    once: bool = False,
) -> ProcessEngine:
    """Return an engine by name.

    Args:
        name: one of `ENGINES`.
        workers: number of workers; by default the number of cores.
        address: of a Ray cluster; if None, one is started on this machine.
        ready: module that prepares at import what all calls need, without threads; local processes inherit it by
            forking.
        needs: module that local processes import when they start; it may create threads.
        once: run each call in its own process, so that its memory is released.

    Raises:
        InputError: Ray is not installed, or the cluster does not answer.
    """
    compiled.share()
    if name == "ray":
        return RayEngine(workers, address, once=once)
    return LocalEngine(workers, ready=ready, needs=needs, once=once)


class LocalEngine:
    """Independent processes of this machine, so that one can end without affecting the others.

    Args:
        workers: number of processes; by default the number of cores.
        ready, needs, once: see `opened`.
    """

    def __init__(
        self, workers: int | None = None, *, ready: str = "", needs: str = "", once: bool = False
    ) -> None:
        self.workers = workers or usable_cpus()
        self._needs = needs
        self._once = once
        # Not forked from this process: threads, such as those of pyarrow, do not survive a fork.
        if NAME == "Windows":
            self._context: BaseContext = get_context("spawn")
        else:
            self._context = get_context("forkserver")
            self._context.set_forkserver_preload([ready] if ready else [])
            forkserver.ensure_running()
        self._idle = [self._process() for _ in range(self.workers)]
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}

    def start(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call in an idle process; a process that has ended is replaced.

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
        """Return the calls that have ended; wait until one has."""
        return wait(handles, return_when=FIRST_COMPLETED).done

    def result(self, handle: Future[Any]) -> Any:
        """Return the result of a call that has ended.

        Raises:
            WorkerLostError: its process was lost.
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
        """Stop the processes after their current calls."""
        for process in (*self._idle, *self._busy.values()):
            process.shutdown(cancel_futures=True)


def _import(name: str) -> None:
    import_module(name)


def _begin_worker() -> None:
    """Leave interruptions to the parent process, and exit when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM if NAME == "Windows" else signal.SIGKILL)


class RayEngine:
    """Ray tasks, one core each.

    Args:
        workers: maximum number of concurrent tasks; by default the number of cores of the cluster.
        address: of the cluster; if None, one is started and stopped on this machine.
        once: see `opened`.

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
        except Exception as error:  # of Ray, among them bare ones where a node starts too slowly
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{f'Ray at {address}' if address else 'Ray on this machine'} does not respond: {reason}"
            ) from error
        self.workers = workers or int(self._ray.cluster_resources().get("CPU", 1))
        # Without this, Ray would silently restart a call whose worker was lost.
        self._call = self._ray.remote(max_retries=0, num_cpus=1, max_calls=int(once))(_call)

    def start(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a call in the cluster."""
        return self._call.remote(function, *arguments)

    def ended(self, handles: Collection[Any]) -> Collection[Any]:
        """Return the calls that have ended; wait until one has."""
        ready, _ = self._ray.wait(list(handles), num_returns=1)
        return list(ready)

    def result(self, handle: Any) -> Any:
        """Return the result of a call that has ended.

        Raises:
            WorkerLostError: its process or its node was lost.
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
        """Disconnect from the cluster; stop it if it was started here."""
        self._ray.shutdown()
        # Ray leaves a signal handler behind that would terminate this process.
        with suppress(ValueError):  # Only the main thread may; elsewhere Ray has not set it either.
            signal.signal(signal.SIGTERM, self._on_sigterm)


def _ray() -> ModuleType:
    try:
        return import_module("ray")
    except ImportError as error:
        raise InputError("The engine ray requires Ray: pip install 'epochzero[ray]'") from error


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
