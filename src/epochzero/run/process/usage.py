"""What the processes of a job have used so far, as the kernel counts it: proc(5), read directly.

One file a process tells parent, state, processor time and memory, and one its reads and writes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from epochzero.platform import ProcessStatus, process_status
from epochzero.run.process.tree import below, living, started_at


class ProcessTree:
    """The processes that a job consists of, wherever their parents have left them.

    Attributes:
        root: the parent of the first one, which is the parent of orphans, too.
    """

    def __init__(self, pid: int) -> None:
        """The tree of the job whose first process is ``pid``.

        The job's parent adopts its orphans, and has no other children that are younger.
        """
        first = process_status(pid)
        self.root = first.parent if first is not None else pid
        self._since = started_at(pid)

    def read(self) -> list[ProcessStatus]:
        """All of it that lives now."""
        if not self._since:
            return []
        found = map(process_status, below(self.root, ((p.pid, p.parent) for p in living())))
        return [process for process in found if process and process.started >= self._since]


def environment_of(pid: int) -> Mapping[str, str]:
    """The variables that a process was started with; none when they cannot be read."""
    with suppress(OSError):
        pairs = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return {}


def switches_of(pid: int) -> int:
    """How often a process's main thread has given up the processor by itself, as to sleep."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                return int(line.split()[1])
    return 0


def scheduled(pid: int) -> tuple[float, float]:
    """Seconds that a main thread used a processor, and waited for one. Source: proc(5), schedstat."""
    with suppress(OSError, ValueError):
        computed, waited, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
        return computed / 1e9, waited / 1e9
    return 0.0, 0.0


def is_python(pid: int) -> bool:
    """Whether a process is a Python."""
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy"))
    return False
