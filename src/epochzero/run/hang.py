"""Jobs that hang: all of it stands still, or ranks wait for one that is dead.

A stall is reported with the stacks of the processes and nothing else is done. Ranks that outlive
another one's failure without a sign of life are ended: they hold GPUs for nothing, often until a
timeout of half an hour.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from epochzero.run.gpus import Gpus
from epochzero.run.model import Event, Record
from epochzero.run.stacks import find_py_spy, stacks_of
from epochzero.run.tree import below, name_of, send
from epochzero.run.usage import Process, Tree, environment_of, is_python, read_process
from epochzero.run.watcher import Clock

__all__ = ["RankWatcher", "StallWatcher"]

_IDLE_CORES = 0.02
_IDLE_GPU = 1.0
"""Percent; a GPU that waits for another in a collective is busy."""
_MOST_DUMPS = 16
_SHORT = 2000

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK")
_ELASTIC = "TORCHELASTIC_RUN_ID"
_ELASTIC_S = 30.0
"""torchrun ends the other ranks itself, and gives each so long."""
_MOST_RANKS = 1024
_LAST_WORDS_S = 5.0
_LAST_WORDS = re.compile(
    rb"Traceback \(most recent call last\)|^Segmentation fault|\b(?:Killed|Aborted|Bus error|"
    rb"core dumped)\b|terminate called|Fatal Python error|CUDA error",
    re.MULTILINE,
)
_A_SAVE = 1 << 20
"""Bytes that ranks write in a second when they save something."""


class StallWatcher:
    """A watcher that reports when neither output nor processors nor GPUs tell of work.

    A stall is reported again after twice the time, and so on, and when it is over.
    """

    def __init__(self, after: float, environment: Mapping[str, str]) -> None:
        """Nothing is looked at yet.

        Args:
            after: seconds without a sign of work until it is a stall.
            environment: of the job.
        """
        self._after = self._next = after
        self._environment = environment
        self._gpus: Gpus | None = None
        self._cpu = 0.0
        self._stalled = False

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """The time begins."""
        self._clock = clock
        self._folder = folder / "stacks"
        self._tree = Tree(pid)
        self._looked = self._active = clock.now()[1]
        return ()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Who prints is not stalled."""
        return self._works()

    def tick(self) -> Iterable[Record]:
        """Looks whether the job works."""
        processes = self._tree.read()
        now = self._clock.now()[1]
        if self._busy(processes, now):
            return self._works()
        if now - self._active < self._next:
            return ()
        self._stalled = True
        self._next *= 2
        return (self._report(processes, now),)

    def ended(self) -> Iterable[Record]:
        """Whoever has ended does not stall."""
        return ()

    def _busy(self, processes: Sequence[Process], now: float) -> bool:
        cpu = sum(process.cpu_seconds for process in processes)
        # Of a child that nobody waited for the time is lost, and the sum falls.
        used = max(0.0, cpu - self._cpu)
        cores = used / max(now - self._looked, 1e-3)
        self._cpu, self._looked = cpu, now
        if not processes or cores >= _IDLE_CORES:
            return True
        # By Ctrl-Z or a scheduler.
        if all(process.state == "T" for process in processes):
            return True
        if self._gpus is None:
            self._gpus = Gpus(self._environment)
        return any(gpu.utilization >= _IDLE_GPU for gpu in self._gpus.read())

    def _works(self) -> Iterable[Record]:
        time, elapsed = self._clock.now()
        silent, self._active = elapsed - self._active, elapsed
        if not self._stalled:
            return ()
        self._stalled, self._next = False, self._after
        return (Event(time, elapsed, "stall_over", f"the job works again after {silent:.0f} s"),)

    def _report(self, processes: Sequence[Process], now: float) -> Event:
        py_spy = find_py_spy(self._environment)
        # What waits for the others was started first; what the others wait for is told by all.
        python = [process.pid for process in processes if is_python(process.pid)]
        pids = python or [process.pid for process in processes]
        stacks = {pid: text for pid in pids[:_MOST_DUMPS] if (text := stacks_of(pid, py_spy))}
        self._write(stacks, now)
        return Event(
            *self._clock.now(),
            "stall",
            f"no output and no use of processors or GPUs for {now - self._active:.0f} s",
            details={f"{name_of(pid)} {pid}": text[:_SHORT] for pid, text in stacks.items()},
        )

    def _write(self, stacks: Mapping[int, str], now: float) -> None:
        # A full disk costs the file; the beginning is in the event.
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            for pid, text in stacks.items():
                (self._folder / f"{now:.0f}s-{pid}.txt").write_text(text, "utf-8")


@dataclass(slots=True)
class _Rank:
    """A process that is a rank, as long as it lives."""

    number: int
    process: Process
    elastic: bool


@dataclass(slots=True)
class _Loss:
    """A rank that failed, and since when the others have shown no sign of life."""

    rank: int
    silent_since: float
    ended: set[tuple[int, int]] = field(default_factory=set)
    kill_at: float | None = None


class RankWatcher:
    """A watcher that ends ranks which outlive another one's failure without a sign of life.

    A rank has failed when its status tells so or, where its parent was quicker to take that, when a
    traceback or the like was printed just before it was gone.
    """

    def __init__(self, grace: float) -> None:
        """Nothing is looked at yet.

        Args:
            grace: seconds that the others may be silent, and again between SIGTERM and SIGKILL.
                What torchrun started is given 30 s more, as it ends them itself.
        """
        self._grace = grace
        self._ranks: dict[tuple[int, int], _Rank] = {}
        self._others: set[tuple[int, int]] = set()
        self._loss: _Loss | None = None
        self._last_words = self._wrote = float("-inf")
        self._written = 0

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """No rank is known yet."""
        self._clock = clock
        self._tree = Tree(pid)
        return ()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Output is a sign of life; the last words of a rank are no other's."""
        now = self._clock.now()[1]
        self._wrote = now
        if self._ranks and _LAST_WORDS.search(data):
            self._last_words = now
        return ()

    def tick(self) -> Iterable[Record]:
        """Looks who is gone."""
        processes = self._tree.read()
        now = self._clock.now()[1]
        living = {(process.pid, process.started): process for process in processes}
        gone = [rank for key, rank in self._ranks.items() if key not in living]
        self._ranks = {key: rank for key, rank in self._ranks.items() if key in living}
        self._learn(processes)
        saved = self._saved(processes)
        if not self._ranks:
            self._loss = None
            return ()
        failed = [rank for rank in gone if self._failed(rank, now)]
        if failed and self._loss is None:
            self._loss = _Loss(failed[0].number, now)
            return (self._lost(failed[0]),)
        if self._loss is None:
            return ()
        if (self._wrote > self._loss.silent_since or saved) and self._loss.kill_at is None:
            self._loss.silent_since = now
        return self._press(self._loss, processes, now)

    def ended(self) -> Iterable[Record]:
        """No rank is left."""
        return ()

    def _learn(self, processes: Iterable[Process]) -> None:
        """Takes note of new ranks: what they start has their variables, too, and is none."""
        for process in processes:
            key = process.pid, process.started
            if key in self._ranks or key in self._others:
                continue
            rank = _rank_of(process)
            of_parent = {known.process.pid for known in self._ranks.values()}
            if rank is None or len(self._ranks) >= _MOST_RANKS or process.parent in of_parent:
                self._others.add(key)
            else:
                self._ranks[key] = rank

    def _failed(self, rank: _Rank, now: float) -> bool:
        left = read_process(rank.process.pid)
        if left is not None and left.started == rank.process.started and left.state == "Z":
            return left.status != 0
        return now - self._last_words < _LAST_WORDS_S

    def _saved(self, processes: Iterable[Process]) -> bool:
        before, self._written = self._written, sum(process.written_bytes for process in processes)
        return self._written - before >= _A_SAVE

    def _lost(self, rank: _Rank) -> Event:
        others = len(self._ranks)
        text = f"rank {rank.number} has failed; {others} other{'s' * (others > 1)} of its node go on"
        return Event(*self._clock.now(), "rank_lost", text, rank=rank.number)

    def _press(self, loss: _Loss, processes: Sequence[Process], now: float) -> Iterable[Record]:
        """Ends the others, when they have been silent for long enough."""
        patience = self._grace + _ELASTIC_S * any(rank.elastic for rank in self._ranks.values())
        if loss.kill_at is None and now - loss.silent_since >= patience:
            loss.kill_at = now + self._grace
            send(signal.SIGTERM, self._all_of_ranks(processes))
            numbers = ", ".join(str(rank.number) for rank in self._ranks.values())
            text = (
                f"rank {loss.rank} had failed and the others showed no sign of life for"
                f" {now - loss.silent_since:.0f} s: ended {numbers}"
            )
            return (Event(*self._clock.now(), "ended_hung_ranks", text, rank=loss.rank),)
        if loss.kill_at is not None and now >= loss.kill_at:
            send(signal.SIGKILL, self._all_of_ranks(processes))
        return ()

    def _all_of_ranks(self, processes: Sequence[Process]) -> list[int]:
        """The ranks with all that they have started."""
        parents = [(process.pid, process.parent) for process in processes]
        ranks = [rank.process.pid for rank in self._ranks.values()]
        return [*ranks, *(pid for rank in ranks for pid in below(rank, parents))]


def _rank_of(process: Process) -> _Rank | None:
    """The rank that a process is by its variables and those of its parent; None for none."""
    environment = environment_of(process.pid)
    number = _number(environment)
    if number is None or _number(environment_of(process.parent)) == number:
        return None
    return _Rank(number, process, _ELASTIC in environment)


def _number(environment: Mapping[str, str]) -> int | None:
    found = (environment.get(name, "") for name in _RANK_VARIABLES)
    return next((int(text) for text in found if text.isascii() and text.isdigit()), None)
