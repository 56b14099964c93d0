"""Linux: processes by proc(5), one file for state, processor time and memory, and one for reads and writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from epochzero.platform.model import ProcessStatus

NAME = "Linux"
ADOPTS_ORPHANS = True
"""Whether `adopt_orphans` has an effect."""
_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def usable_cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def memory_available() -> int | None:
    """Bytes of the machine's memory that programs can still get; None where the kernel does not say."""
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return None


def adopt_orphans(adopt: bool = True) -> None:
    """Whether descendants whose parent exits become children of this process (prctl(2))."""
    # It takes ten milliseconds to import.
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(adopt), 0, 0, 0)


def processes() -> Iterator[ProcessStatus]:
    """Each process that exists now, without its reads and writes (`process_status`)."""
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (fields := _stat(int(name))):
                yield _process(int(name), fields, (0, 0, 0))


def process_status(pid: int) -> ProcessStatus | None:
    """One process; None when it is gone."""
    fields = _stat(pid)
    return _process(pid, fields, _storage(pid)) if fields else None


def name_of(pid: int) -> str:
    """The name of a process, such as ``python``; its number where it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return str(pid)


def _stat(pid: int) -> list[bytes]:
    """The fields of proc(5) from the third on; none when the process is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb", 0) as file:
        # The name, in brackets, may contain anything.
        return file.read().rpartition(b")")[2].split()
    return []


def _process(pid: int, stat: Sequence[bytes], storage: tuple[int, int, int]) -> ProcessStatus:
    read, written, transferred = storage
    return ProcessStatus(
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
    """Bytes read, written and transferred; zeros where the process is another user's."""
    with suppress(OSError), open(f"/proc/{pid}/io", "rb", 0) as file:
        numbers = [int(word) for word in file.read().split()[1::2]]
        return numbers[4], numbers[5], numbers[0] + numbers[1]
    return 0, 0, 0
