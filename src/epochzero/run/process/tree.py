"""The processes that come of a process: find them all, and end them so that none is left.

On Linux, a process that leaves its parent, its group and its session still has an ancestor that the kernel
gives it to when its parent exits: the nearest one that adopts orphans (`epochzero.platform.adopt_orphans`). The
supervisor and its guard do. On macOS, an orphan counts as a child of the leader of its session.

Python's standard library only: the guard runs without anything else.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from epochzero.platform import ProcessStatus, process_status, processes

_PAUSE_S = 0.02


def descendants(root: int, *, since: int = 0) -> list[int]:
    """All living processes below ``root`` that were not started before ``since`` (`started_at`)."""
    return below(root, ((p.pid, p.parent) for p in living() if p.started >= since))


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
        Those that are still running after ``patience`` more seconds, as a process that waits for a device.
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


def living() -> Iterator[ProcessStatus]:
    """Each process that has not exited."""
    return (process for process in processes() if process.state not in "ZX")


def started_at(pid: int) -> int:
    """When a process was started (`ProcessStatus.started`); 0 when it is gone."""
    process = process_status(pid)
    return process.started if process is not None and process.state not in "ZX" else 0
