"""``epochzero check --serve``: carries out checks in processes that need not start Python or parse again.

Each check is a fork of the server, which has loaded all modules and parsed the files of earlier checks. It gets
the arguments, environment, directory and standard streams of the client and does what the client would have done.
So its answers are those of a check without a server, and no check changes the server or another check. After a
check the server loads and parses what that check had to load and parse. After a dry run it starts a fork server that
imports torch, for those that follow.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

import epochzero
from epochzero.check.dryrun import launchers
from epochzero.check.dryrun.attempt import CHILD
from epochzero.check.program.modules import share_module
from epochzero.check.program.shared_modules import record_missed
from epochzero.cli.check_client import facts, receive, send, socket_file
from epochzero.errors import InputError
from epochzero.platform import is_private

IDLE_S = 3600.0
"""The server exits if nobody asks for so long."""
MOST_AT_ONCE = 4
MOST_REQUEST_BYTES = 8 << 20
_REQUEST_S = 2.0
_STREAMS = 3


@dataclass(frozen=True, slots=True)
class _RunningCheck:
    """A check that is carried out: its client, and the file in which it reports what it had to prepare."""

    client: socket.socket
    report: IO[bytes]


def serve(run: Callable[[], object], warm_up: Callable[[], object]) -> None:
    """Carry out checks until nobody asks for an hour, EpochZero changes on disk, or a signal arrives.

    Args:
        run: carries out the command in `sys.argv`; it may raise `SystemExit`.
        warm_up: loads what every check needs.

    Raises:
        InputError: another server runs, or none can run here.
    """
    file = socket_file()
    if file is None or not hasattr(os, "fork"):
        raise InputError("--serve requires Unix sockets and fork, which this system does not have")
    with _listening(file) as listener:
        warm_up()
        print(f"epochzero: ready for checks (process {os.getpid()}); Ctrl-C ends it", flush=True)
        _CheckServer(listener, run).serve()


@contextmanager
def _listening(file: Path) -> Iterator[socket.socket]:
    """A socket that only this user can reach.

    Raises:
        InputError: another server listens, or the socket cannot be created.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(os.lstat(file.parent)):
            raise InputError(f"{file.parent}: other users can change this directory")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if _listens(file):
            raise InputError("a check server is already running")
        file.unlink(missing_ok=True)
        mask = os.umask(0o077)
        try:
            listener.bind(str(file))
        finally:
            os.umask(mask)
    except OSError as error:
        raise InputError(f"{file} cannot listen: {error.strerror or error}") from error
    identity = os.lstat(file)
    try:
        with listener:
            listener.listen()
            yield listener
    finally:
        # Another server may have taken its place.
        with suppress(OSError):
            if os.lstat(file).st_ino == identity.st_ino:
                file.unlink()


def _listens(file: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(file))
        except OSError:
            return False
    return True


class _CheckServer:
    def __init__(self, listener: socket.socket, run: Callable[[], object]) -> None:
        self._listener = listener
        self._run = run
        self._facts = json.loads(json.dumps(facts()))
        self._files = _own_files()
        self._running: dict[int, _RunningCheck] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Answer until it is time to exit."""
        woken = _woken_by_signals()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(woken, selectors.EVENT_READ, partial(self._signaled, woken))
        gc.disable()
        gc.freeze()
        last = time.monotonic()
        try:
            while self._running or time.monotonic() - last < IDLE_S:
                for key, _ in self._selector.select(IDLE_S):
                    last = time.monotonic()
                    if not key.data():
                        return
        finally:
            for pid in self._running:
                self._end(pid)
            self._stop_fork_server()

    def _signaled(self, woken: int) -> bool:
        """Whether no signal asks to exit; checks that have ended are reported."""
        signals = os.read(woken, 4096)
        self._reap()
        return signal.SIGINT not in signals and signal.SIGTERM not in signals

    def _accept(self) -> bool:
        """Start the next check; False if this server is out of date."""
        client, _ = self._listener.accept()
        client.settimeout(_REQUEST_S)
        try:
            request, streams = receive(client, _STREAMS, MOST_REQUEST_BYTES)
        except (OSError, ValueError):
            client.close()
            return True
        now = _own_files()
        current = all(now.get(file) == state for file, state in self._files.items())
        reason = (
            "EpochZero has changed" if not current
            else "another process" if request.get("facts") != self._facts
            else "busy" if len(self._running) >= MOST_AT_ONCE
            else ""
        )  # fmt: skip
        with suppress(OSError):
            send(client, {"refused": reason} if reason else {"started": True})
        if reason:
            client.close()
        else:
            self._start(client, request, streams)
        for number in streams:
            os.close(number)
        return current

    def _start(self, client: socket.socket, request: dict[str, Any], streams: list[int]) -> None:
        report = tempfile.TemporaryFile()  # noqa: SIM115 (open until the check has ended)
        pid = os.fork()
        if pid == 0:
            _check(self._run, request, streams, report)
        self._running[pid] = _RunningCheck(client, report)
        self._selector.register(client, selectors.EVENT_READ, partial(self._left, client, pid))

    def _left(self, client: socket.socket, pid: int) -> bool:
        """A client sends nothing after its request: it has exited, and its check ends."""
        self._selector.unregister(client)
        self._end(pid)
        return True

    def _end(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Report the exit codes of checks that have ended, and prepare what they had to do themselves."""
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended = self._running.pop(pid, None)
            if ended is None:
                continue
            with suppress(KeyError):
                self._selector.unregister(ended.client)
            code = os.waitstatus_to_exitcode(status)
            with ended.client, suppress(OSError):
                # A check that was killed has no exit code.
                if code >= 0:
                    send(ended.client, {"exit": code})
            with ended.report, suppress(OSError, ValueError):
                ended.report.seek(0)
                self._prepare(json.load(ended.report))
            gc.freeze()

    def _prepare(self, report: dict[str, Any]) -> None:
        """Load and parse what a check had to, and import torch if it ran dry."""
        own = [name for name in report["loaded"] if name.startswith("epochzero.")]
        for name in own:
            with suppress(ImportError):
                importlib.import_module(name)
        if own:
            self._files = _own_files() | self._files
        for name, shown, file, version in report["parsed"]:
            share_module((name, shown, file, (version[0], version[1]) if version else None))
        if report["dry"] and launchers.fork_server is None and launchers.can_fork():
            launchers.fork_server = launchers.ForkServer(str(CHILD), os.environ)
            control = launchers.fork_server.control
            self._selector.register(control, selectors.EVENT_READ, self._hear_fork_server)

    def _hear_fork_server(self) -> bool:
        """The fork server is ready, or has ended."""
        if launchers.fork_server is not None and not launchers.fork_server.wait_until_ready():
            self._stop_fork_server()
        return True

    def _stop_fork_server(self) -> None:
        if launchers.fork_server is not None:
            self._selector.unregister(launchers.fork_server.control)
            launchers.fork_server.stop()
            launchers.fork_server = None


def _own_files() -> dict[str, tuple[int, int]]:
    """Size and time of the files of EpochZero and of the modules that it has loaded."""
    package = os.path.dirname(epochzero.__file__)
    files = [os.path.join(at, name) for at, _, names in os.walk(package) for name in names]
    files += [
        file for module in sys.modules.values() if (file := getattr(module, "__file__", None))
    ]
    found = {}
    for file in files:
        with suppress(OSError):
            if not file.endswith(".pyc"):
                state = os.stat(file)
                found[file] = (state.st_size, state.st_mtime_ns)
    return found


def _woken_by_signals() -> int:
    """A descriptor from which the numbers of signals are read: of children that exit, and to exit."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing)
    return reading


# -- In the fork -------------------------------------------------------------------------------


def _check(
    run: Callable[[], object],
    request: dict[str, Any],
    streams: list[int],
    report: IO[bytes],
) -> NoReturn:
    """Be the client: its streams, directory and environment, and then its command."""
    code = 2
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, given in enumerate(streams):
            os.dup2(given, number)
        server = launchers.fork_server
        _close_all_but(report.fileno(), *([server.control.fileno()] if server else []))
        sys.stdin, sys.stdout, sys.stderr = _opened(request["encodings"])
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        tempfile.tempdir = None
        sys.argv[1:] = request["arguments"]
        missed = record_missed()
        loaded = set(sys.modules)
        code = _status(run)
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
        added = [name for name in sys.modules if name not in loaded]
        report.write(
            json.dumps({"parsed": missed, "loaded": added, "dry": launchers.started > 0}).encode()
        )
        report.flush()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    finally:
        os._exit(code)


def _status(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _close_all_but(*needed: int) -> None:
    start = _STREAMS
    for number in sorted(needed):
        os.closerange(start, number)
        start = number + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _opened(encodings: Sequence[Sequence[str]]) -> tuple[IO[str], IO[str], IO[str]]:
    """The standard streams as Python opens them."""
    outputs = [
        io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(number, "wb", closefd=False)),
            encoding,
            errors,
            line_buffering=number == 2 or os.isatty(number),
        )
        for number, (encoding, errors) in enumerate(encodings, 1)
    ]
    return os.fdopen(0, closefd=False), outputs[0], outputs[1]
