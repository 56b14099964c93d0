"""Dry runs and scripts whose torch is imported once."""

from __future__ import annotations

import compileall
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import IO, Any

import pytest

from epochzero.check.dryrun import process


class Forked:
    """A launcher that the zygote forked, with the part of `subprocess.Popen` that is used of it."""

    def __init__(self, zygote: socket.socket, command: Sequence[str], pass_fds: list[int]) -> None:
        self.returncode: int | None = None
        request_read, request_write = os.pipe()
        account_read, account_write = os.pipe()
        self._end, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null = os.open(os.devnull, os.O_RDWR)
        given = [client.fileno(), request_read, account_write, null, *pass_fds]
        request = {"launcher": command[-1], "numbers": [0, 1, 2, *pass_fds]}
        socket.send_fds(zygote, [json.dumps(request).encode()], given)
        for number in (request_read, account_write, null):
            os.close(number)
        client.close()
        self.stdin: IO[bytes] | None = os.fdopen(request_write, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(account_read, "rb")
        self.pid = int(self._end.recv(100))

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        return self._ended(socket.MSG_DONTWAIT)

    def wait(self) -> int | None:
        """The exit code, when it has ended."""
        return self._ended(0)

    def _ended(self, flags: int) -> int | None:
        if self.returncode is None:
            try:
                self.returncode = int(self._end.recv(100, flags) or -signal.SIGKILL)
                self._end.close()
            except BlockingIOError:
                pass
        return self.returncode


@pytest.fixture(scope="session")
def zygote() -> Iterator[socket.socket]:
    """The process that has torch."""
    # A dry run writes no bytecode; an installed package has it.
    compileall.compile_dir(Path(process.__file__).with_name("child"), quiet=1)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        script = str(Path(__file__).with_name("zygote.py"))
        with theirs:
            started = subprocess.Popen(
                [sys.executable, script, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )
        yield ours
    started.wait()


@pytest.fixture(scope="session")
def run_preloaded(zygote: socket.socket) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script and its arguments in a process that has torch."""

    def run(*script: str) -> subprocess.CompletedProcess[str]:
        end, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end, TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
            request = json.dumps({"script": script, "numbers": [1, 2]}).encode()
            given = [client.fileno(), output.fileno(), errors.fileno()]
            socket.send_fds(zygote, [request], given)
            client.close()
            end.recv(100)
            status = int(end.recv(100) or -signal.SIGKILL)
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(script, status, output.read(), errors.read())

    return run


@pytest.fixture
def preloaded(zygote: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dry runs of this test fork from a process that has torch, and import nothing of it."""

    def start(command: Sequence[str], *, pass_fds: list[int], **_: Any) -> Forked:
        return Forked(zygote, command, pass_fds)

    forking = SimpleNamespace(Popen=start, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(process, "subprocess", forking)
