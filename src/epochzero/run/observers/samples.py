"""What a job uses, once a second: its process tree, its GPUs, and what its node has left."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from epochzero.platform import ProcessStatus, memory_available, name_of
from epochzero.run.observers.gpus import GpuReader
from epochzero.run.process.usage import ProcessTree
from epochzero.run.process.watcher import Watcher, load
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Record, Sample
from epochzero.run.scheduler.slurm import memory_of_tasks

_LOOPBACK = "lo"
_FIRST_ASK_S, _ASK_S = 5.0, 30.0
"""slurmstepd gathers every 30 s by default (JobAcctGatherFrequency)."""


class SampleWatcher(Watcher):
    """A watcher that leaves a `Sample` each second. A job of less than a second has none."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Nothing is read yet."""
        self._folder = folder
        self._environment = environment
        self._groups: list[Path] | None = None
        self._elsewhere = 0
        self._ask_at = _FIRST_ASK_S

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """Takes note of where counters stand."""
        self._clock = clock
        self._tree = ProcessTree(pid)
        self._network = _network()
        self._used = _Usage()
        self._last = (clock.now()[1], 0.0)
        return ()

    def tick(self) -> Iterable[Record]:
        """One sample."""
        if self._groups is None:
            # Nothing of this is needed for jobs that end at once, and it takes time to load.
            load("epochzero.check")
            from epochzero.check.target.system import control_groups

            self._groups = control_groups()
            self._gpus = GpuReader(self._environment)
        processes = self._tree.read()
        if not processes:
            return ()
        elsewhere = self._memory_elsewhere(processes)
        time, elapsed = self._clock.now()
        self._used.add(processes)
        seconds, used = elapsed - self._last[0], self._used.cpu_seconds - self._last[1]
        self._last = elapsed, self._used.cpu_seconds
        received, sent = _network()
        return (
            Sample(
                time,
                elapsed,
                processes=len(processes),
                cpu_percent=round(100 * used / seconds, 1) if seconds > 0 else 0.0,
                memory_bytes=elsewhere + sum(process.memory_bytes for process in processes),
                memory_available_bytes=memory_left(self._groups),
                read_bytes=self._used.read_bytes,
                written_bytes=self._used.written_bytes,
                disk_free_bytes=_disk_free(self._folder),
                received_bytes=max(0, received - self._network[0]),
                sent_bytes=max(0, sent - self._network[1]),
                gpus=self._gpus.read(),
            ),
        )

    def _memory_elsewhere(self, processes: Iterable[ProcessStatus]) -> int:
        """Of tasks that srun has started: they are children of slurmstepd, and the scheduler knows them."""
        now = self._clock.now()[1]
        if now >= self._ask_at and any(name_of(process.pid) == "srun" for process in processes):
            self._elsewhere = memory_of_tasks(self._environment)
            self._ask_at = now + _ASK_S
        return self._elsewhere


class _Usage:
    """What a tree has used since it began. A count never falls.

    The kernel adds what a process has used to its parent when the parent waits for it; of a process
    whose parent does not, what was seen last is kept.
    """

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self.read_bytes = self.written_bytes = 0
        self._seen = (0.0, 0, 0)

    def add(self, processes: Iterable[ProcessStatus]) -> None:
        """Counts what came since the last look."""
        cpu, read, written = 0.0, 0, 0
        for process in processes:
            cpu += process.cpu_seconds
            read += process.read_bytes
            written += process.written_bytes
        self.cpu_seconds += max(0.0, cpu - self._seen[0])
        self.read_bytes += max(0, read - self._seen[1])
        self.written_bytes += max(0, written - self._seen[2])
        self._seen = cpu, read, written


def memory_left(groups: Iterable[Path], root: Path = Path("/")) -> int:
    """Bytes that may still be used: of the machine's memory, and of each limit of a control group.

    A group's count holds files that the kernel drops when memory is short; they are taken off, as
    Kubernetes does for its working set.

    Args:
        groups: folders of the control groups, version 1 or 2.
        root: of the system's files.
    """
    meminfo = _numbers(root / "proc/meminfo")
    if "MemAvailable" in meminfo:
        left = [meminfo["MemAvailable"] << 10]
    else:
        available = memory_available()
        left = [] if available is None else [available]
    for group in groups:
        for limit, usage, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            most = _text(group / limit).strip()
            if most.isdigit() and (used := _text(group / usage).strip()).isdigit():
                dropped = _numbers(group / "memory.stat").get(cache, 0)
                left.append(max(0, int(most) - max(0, int(used) - dropped)))
    return min(left, default=0)


def _numbers(file: Path) -> dict[str, int]:
    """Of lines ``name: number`` or ``name number`` the numbers."""
    words = (line.replace(":", " ").split() for line in _text(file).splitlines())
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text("utf-8", "replace")
    return ""


def _disk_free(folder: Path) -> int:
    with suppress(OSError):
        measured = os.statvfs(folder)
        return measured.f_bavail * measured.f_frsize
    return 0


def _network() -> tuple[int, int]:
    """Bytes that all interfaces but the loopback have received and sent."""
    received = sent = 0
    for line in _text(Path("/proc/net/dev")).splitlines():
        name, colon, measured = line.partition(":")
        numbers = measured.split()
        if colon and name.strip() != _LOOPBACK and len(numbers) > 8:
            received += int(numbers[0])
            sent += int(numbers[8])
    return received, sent
