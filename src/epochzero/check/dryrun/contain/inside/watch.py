"""Waits for the job, measures its processes, and ends all of them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import NamedTuple

_PAUSE_S = 0.005
_BETWEEN_MEASURES_S = 0.05
_MANY = 10_000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessEnd(NamedTuple):
    """How the job's first process ended, or which limit it broke; peaks over all its processes."""

    status: int | None
    limit: str
    memory_bytes: int
    processes: int


def watch(job: int, seconds: float, memory_bytes: int, processes: int) -> ProcessEnd:
    """Wait until the job ends or breaks a limit."""
    # A fork bomb has thousands of processes that want the processor, and this is one.
    with suppress(PermissionError):
        os.nice(-10)
    start = measured = time.monotonic()
    memory, count = 0, 1
    while True:
        status = _reap(job)
        now = time.monotonic()
        if status is None and now - measured >= _BETWEEN_MEASURES_S:
            measured = now
            members = _descendants(os.getpid(), most=processes + 1)
            held = _held(members, memory_bytes)
            memory, count = max(memory, held), max(count, len(members))
        limit = (
            "time" if now - start > seconds
            else "memory" if memory > memory_bytes
            else "processes" if count > processes
            else ""
        )  # fmt: skip
        if status is not None or limit:
            return ProcessEnd(status, limit if status is None else "", memory, count)
        time.sleep(_PAUSE_S)


def end_all(job: int, everyone: bool) -> None:
    """Kill the job and every process that it left, and take their leave.

    Args:
        job: its first process, which leads a group.
        everyone: this is process 1 of its namespace, where all others are the job's.
    """
    if everyone:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.wait()
    # Where descendants cannot be listed, the group is what is known of them.
    if not os.path.isdir("/proc/self"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(job, signal.SIGKILL)
    # A process may fork while it is looked for: until none is left.
    while members := _descendants(os.getpid(), _MANY):
        for member in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
        _reap(0)
        time.sleep(_PAUSE_S)


def _reap(job: int) -> int | None:
    """Take leave of what has ended; the job's wait status, where it is among them."""
    found = None
    with suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            if child == job:
                found = status
    return found


def _descendants(process: int, most: int) -> list[int]:
    """Processes below one, by what the kernel lists as children of each; few more than `most`."""
    found: list[int] = []
    waiting = [process]
    # Who counts a fork bomb to its end never gets there.
    while waiting and len(found) < most:
        parent = waiting.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as stream:
                    children = [int(number) for number in stream.read().split()]
                found += children
                waiting += children
    return found


def _held(members: list[int], limit: int) -> int:
    """Bytes of memory that processes hold: pages they share count once where it matters."""
    total = sum(_resident(member) for member in members)
    # What is shared takes the kernel long to tell, so it is asked only when it would decide.
    return total if total <= limit else sum(_proportional(member) for member in members)


def _resident(member: int) -> int:
    with suppress(OSError, IndexError), open(f"/proc/{member}/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * _PAGE
    return 0


def _proportional(member: int) -> int:
    with suppress(OSError), open(f"/proc/{member}/smaps_rollup", encoding="ascii") as stream:
        for line in stream:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(member)
