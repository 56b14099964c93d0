"""What NCCL's RAS thread reports is read from the process of the job that listens for clients."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from epochzero.run.observers.nccl_ras import reported

REPORT = """\
Job summary
===========

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         2         2         2   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (5f3c) MISMATCH
  Communicator ranks have different AllReduce operation counts
  Rank 0 has launched up to operation 41 -- GPU 0 managed by process 7 on node a
  Rank 1 has launched up to operation 40 -- GPU 1 managed by process 8 on node a
"""


@pytest.fixture
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _answer(server: socket.socket) -> None:
    # Without a client the server is closed below.
    with suppress(OSError):
        client, _ = server.accept()
        with client:
            if client.recv(100) == b"verbose status\n":
                client.sendall(REPORT.encode())


def test_errors_and_warnings_of_the_job(address: str) -> None:
    text = reported({"NCCL_RAS_ADDR": address}, [os.getpid()])
    assert text.splitlines()[0] == "#0-0 (5f3c) MISMATCH"
    assert text.splitlines()[-1].startswith("  Rank 1 has launched up to operation 40")
    assert len(text.splitlines()) == 4


def test_the_thread_of_another_job_is_not_asked(address: str) -> None:
    assert reported({"NCCL_RAS_ADDR": address}, [os.getppid()]) == ""
    assert reported({"NCCL_RAS_ADDR": "no address"}, [os.getpid()]) == ""
    assert reported({}, []) == ""
