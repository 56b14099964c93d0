"""Starts the launcher of a dry run: as a new process, or in a fork server that has imported torch.

A process that outlives a check may have a `ForkServer`; other checks start every launcher as a new process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from epochzero.check.dryrun.contain import launcher
from epochzero.check.dryrun.contain.environment import contained_environment
from epochzero.check.dryrun.contain.model import Means
from epochzero.check.dryrun.fork_server import fits, is_same_python

FORK_SERVER = Path(__file__).with_name("fork_server.py")
_LARGEST_ANSWER = 1 << 17


class SimulatedLauncher(Protocol):
    """The part of `subprocess.Popen` that a dry run uses."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""

    def wait(self) -> int | None:
        """The exit code, after it has exited."""


class ForkedLauncher:
    """A launcher that a fork server has forked.

    Args:
        control: socket of the fork server.
        numbers: descriptors that it gets.
    """

    def __init__(self, control: socket.socket, numbers: Sequence[int]) -> None:
        self.returncode: int | None = None
        request_read, request_write = os.pipe()
        account_read, account_write = os.pipe()
        self._end, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null = os.open(os.devnull, os.O_RDWR)
        given = [client.fileno(), request_read, account_write, null, *numbers]
        request = {"launcher": launcher()[-1], "numbers": [0, 1, 2, *numbers]}
        try:
            socket.send_fds(control, [json.dumps(request).encode()], given)
        finally:
            for number in (request_read, account_write, null):
                os.close(number)
            client.close()
            self.stdin: IO[bytes] | None = os.fdopen(request_write, "wb")
            self.stdout: IO[bytes] | None = os.fdopen(account_read, "rb")
        self.pid = int(self._end.recv(100))

    def poll(self) -> int | None:
        """See `SimulatedLauncher`."""
        return self._ended(socket.MSG_DONTWAIT)

    def wait(self) -> int | None:
        """See `SimulatedLauncher`."""
        return self._ended(0)

    def _ended(self, flags: int) -> int | None:
        if self.returncode is None:
            with suppress(BlockingIOError):
                self.returncode = int(self._end.recv(100, flags) or -signal.SIGKILL)
                self._end.close()
        return self.returncode


class ForkServer:
    """A process that has imported torch, in the Python and with the environment of this process.

    It is not contained, as this process is not. So it is neither another Python nor gets variables of a job, which
    may name libraries of the job.

    Args:
        child: the script that the job's Python executes in a dry run.
        environment: of this process.
        script: of the process.

    Attributes:
        control: socket of the process.
        process: the process.
    """

    def __init__(
        self, child: str, environment: Mapping[str, str], script: Path = FORK_SERVER
    ) -> None:
        self.child = child
        self._environment, _ = contained_environment(environment)
        self._read: frozenset[str] = frozenset(self._environment)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, str(script), str(theirs.fileno()), child],
                pass_fds=[theirs.fileno()],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait_until_ready(self) -> bool:
        """Read the message that torch has been imported; False if the process has ended."""
        try:
            self._read = frozenset(json.loads(self.control.recv(_LARGEST_ANSWER)))
        except (OSError, ValueError):
            return False
        return True

    def launch(
        self, command: Sequence[str], environment: Mapping[str, str], numbers: Sequence[int]
    ) -> SimulatedLauncher | None:
        """Fork a launcher; None if a job with this command and environment needs another process."""
        if (
            not is_same_python(command[0], sys.executable)
            or command[1:2] != [self.child]
            or not fits(environment, self._environment, self._read)
        ):
            return None
        try:
            return ForkedLauncher(self.control, numbers)
        except (OSError, ValueError):
            return None

    def stop(self) -> None:
        """End the process, and what it has forked."""
        # Forks of this process may hold copies of the socket: closing alone would not end the connection.
        with suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        self.process.wait()


def can_fork() -> bool:
    """Whether this system and Python can have a fork server."""
    return sys.platform == "linux" and importlib.util.find_spec("torch") is not None


fork_server: ForkServer | None = None
"""That of this process; set by a process that outlives its checks."""
started = 0
"""Launchers that this process has started as new processes."""


def start_launcher(
    command: Sequence[str],
    environment: Mapping[str, str],
    numbers: Sequence[int],
    means: Means,
) -> SimulatedLauncher:
    """Start the launcher of a dry run.

    Args:
        command: of the job.
        environment: of the job, without secrets.
        numbers: descriptors that the launcher gets.
        means: of the containment. Without namespaces, it has to be in place before torch is imported.
    """
    global started
    if fork_server is not None and means is Means.NAMESPACES:
        forked = fork_server.launch(command, environment, numbers)
        if forked is not None:
            return forked
    started += 1
    return subprocess.Popen(
        launcher(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=list(numbers),
        env={},
        start_new_session=True,
    )
