"""Dry runs and scripts whose torch is imported once."""

from __future__ import annotations

import compileall
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from epochzero.check.dryrun import launchers
from epochzero.check.dryrun.attempt import CHILD
from epochzero.check.dryrun.launchers import ForkServer


@pytest.fixture(scope="session")
def zygote() -> Iterator[ForkServer]:
    """The process that has torch."""
    # A dry run writes no bytecode; an installed package has it.
    compileall.compile_dir(CHILD.parent, quiet=1)
    server = ForkServer(str(CHILD), os.environ, Path(__file__).with_name("zygote.py"))
    assert server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def run_preloaded(zygote: ForkServer) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script and its arguments in a process that has torch."""

    def run(*script: str) -> subprocess.CompletedProcess[str]:
        end, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end, TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
            request = json.dumps({"script": script, "numbers": [1, 2]}).encode()
            given = [client.fileno(), output.fileno(), errors.fileno()]
            socket.send_fds(zygote.control, [request], given)
            client.close()
            end.recv(100)
            status = int(end.recv(100) or -signal.SIGKILL)
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(script, status, output.read(), errors.read())

    return run


@pytest.fixture
def preloaded(zygote: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dry runs of this test fork from a process that has torch, and import nothing of it."""
    monkeypatch.setattr(launchers, "fork_server", zygote)
