"""What NCCL itself reports of a job in which nothing moves: errors and warnings of its RAS subsystem.

A thread of each process with NCCL 2.24 or later knows which processes still answer and how many collectives each
rank has launched. Only on each node the first process of the first job answers clients. A client sends a line and reads to the end.
Source: NCCL User Guide, Troubleshooting, RAS.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress

from epochzero.run.observers.kernel_waits import listens

_VARIABLE = "NCCL_RAS_ADDR"
_ADDRESS = "localhost:28028"
_REQUEST = b"verbose status\n"
_ANSWER_S = 10.0
"""A report waits five seconds for processes that do not answer."""
_MOST_BYTES = 1 << 20
_SECTION = re.compile(
    r"^(?:Errors|Warnings)\n=+\n(.*?)(?=^\w[^\n]*\n===|\Z)", re.MULTILINE | re.DOTALL
)


def reported(environment: Mapping[str, str], pids: Iterable[int]) -> str:
    """The errors and warnings that NCCL reports of a job, a line each; empty if none of its processes answers.

    Args:
        environment: of the job, which may move the address of the thread.
        pids: of its processes on this node: the address may belong to another job.
    """
    host, _, port = environment.get(_VARIABLE, _ADDRESS).rpartition(":")
    if not port.isdigit() or not any(listens(pid, int(port)) for pid in pids):
        return ""
    text = b""
    with (
        suppress(OSError),
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S) as connection,
    ):
        connection.sendall(_REQUEST)
        while len(text) < _MOST_BYTES and (part := connection.recv(1 << 16)):
            text += part
    return parse_report(text.decode("utf-8", "replace"))


def parse_report(text: str) -> str:
    """The lines of the sections of errors and warnings of a report."""
    sections = _SECTION.findall(text.replace("\r\n", "\n"))
    return "\n".join(line for part in sections for line in part.splitlines() if line.strip())
