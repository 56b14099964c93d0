"""The processes that come of a process: find them all, and end them so that none is left.

A process that leaves its parent, its group and its session still has an ancestor that the kernel
gives it to when its parent ends: the nearest one that adopts orphans (``PR_SET_CHILD_SUBREAPER``,
prctl(2)). The supervisor and its guard do.

Python's standard library only: the guard runs without anything else.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 0.02


def adopt_orphans(adopt: bool = True) -> None:
    """Whether descendants whose parent ends become children of this process."""
    # It takes ten milliseconds to import.
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(adopt), 0, 0, 0)


def descendants(root: int, *, since: int = 0) -> list[int]:
    """All living processes below ``root`` that were not started before ``since`` (`started_at`)."""
    return below(root, ((pid, parent) for pid, parent, start in _processes() if start >= since))


def below(root: int, parents: Iterable[tuple[int, int]]) -> list[int]:
    """All below ``root``, of processes that are given each with its parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents:
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        under = children.get(waiting.pop(), ())
        found += under
        waiting += under
    return found


def end_descendants(root: int, *, since: int, grace: float, patience: float) -> list[int]:
    """Ends all processes below this one: asks, waits for ``grace`` seconds, then kills.

    Returns:
        Those that still live after ``patience`` more seconds, as a process that waits for a device.
    """
    kill = time.monotonic() + grace
    send(signal.SIGTERM, descendants(root, since=since))
    while living := descendants(root, since=since):
        now = time.monotonic()
        if now > kill + patience:
            break
        if now > kill:
            send(signal.SIGKILL, living)
        time.sleep(_PAUSE_S)
    return living


def send(number: int, pids: Iterable[int]) -> None:
    """Sends a signal to processes, and to those that are stopped that they may go on to get it."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            if number == signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)


def name_of(pid: int) -> str:
    """What a process is called, such as ``python``; its number where it has gone."""
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return str(pid)


def started_at(pid: int) -> int:
    """When a process was started, in clock ticks since the system was; 0 when that is not known."""
    return next((started for _, _, started in _stat(pid)), 0)


def _processes() -> Iterator[tuple[int, int, int]]:
    """Each living process with its parent and when it was started."""
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                yield from _stat(int(name))


def _stat(pid: int) -> Iterator[tuple[int, int, int]]:
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        # The name, in brackets, may hold anything. Fields 3, 4 and 22 of proc(5).
        fields = file.read().rpartition(b")")[2].split()
        if fields[0] not in (b"Z", b"X"):
            yield pid, int(fields[1]), int(fields[19])
