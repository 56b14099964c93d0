"""What the processes of a job have used so far, as the kernel counts it: proc(5), read directly.

One file a process tells parent, state, processor time and memory, and one its reads and writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from epochzero.run.tree import below, started_at

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment.

    Attributes:
        pid, parent: numbers.
        started: in clock ticks since the system was; with ``pid`` it is never used again.
        state: a letter of proc(5): R runs, S sleeps, T is stopped, Z has ended and was not waited for.
        status: how it ended, as waitpid(2) has it; of one in state Z.
        cpu_seconds: of all its threads, and of its children that have ended.
        memory_bytes: resident.
        read_bytes, written_bytes: from and to storage; also of its children that have ended.
        transferred_bytes: that passed through read and write calls, of files, pipes and terminals.
    """

    pid: int
    parent: int
    started: int
    state: str
    status: int
    cpu_seconds: float
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    transferred_bytes: int = 0


class Tree:
    """The processes that a job consists of, wherever their parents have left them.

    Attributes:
        root: the parent of the first one, which is the parent of orphans, too.
    """

    def __init__(self, pid: int) -> None:
        """The tree of the job whose first process is ``pid``.

        The job's parent adopts its orphans, and has no other children that are younger.
        """
        first = read_process(pid)
        self.root = first.parent if first is not None else pid
        self._since = started_at(pid)

    def read(self) -> list[Process]:
        """All of it that lives now."""
        if not self._since:
            return []
        stats = {pid: stat for pid in _pids() if (stat := _stat(pid)) and stat[0] not in b"ZX"}
        parents = ((pid, int(stat[1])) for pid, stat in stats.items())
        found = (_process(pid, stats[pid]) for pid in below(self.root, parents))
        return [process for process in found if process.started >= self._since]


def read_process(pid: int) -> Process | None:
    """One process; None when it is gone."""
    stat = _stat(pid)
    return _process(pid, stat) if stat else None


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


def is_python(pid: int) -> bool:
    """Whether a process is a Python."""
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy"))
    return False


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _stat(pid: int) -> list[bytes]:
    """The fields of proc(5) from the third on; none when the process is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb", 0) as file:
        # The name, in brackets, may hold anything.
        return file.read().rpartition(b")")[2].split()
    return []


def _process(pid: int, stat: Sequence[bytes]) -> Process:
    read, written, transferred = _storage(pid)
    return Process(
        pid=pid,
        parent=int(stat[1]),
        started=int(stat[19]),
        state=stat[0].decode(),
        status=int(stat[49]),
        cpu_seconds=sum(map(int, stat[11:15])) / _TICKS,
        memory_bytes=int(stat[21]) * _PAGE,
        read_bytes=read,
        written_bytes=written,
        transferred_bytes=transferred,
    )


def _storage(pid: int) -> tuple[int, int, int]:
    """Bytes read, written and transferred; nothing where the process is another user's."""
    with suppress(OSError), open(f"/proc/{pid}/io", "rb", 0) as file:
        numbers = [int(word) for word in file.read().split()[1::2]]
        return numbers[4], numbers[5], numbers[0] + numbers[1]
    return 0, 0, 0
