"""The ranks of a job on this node, and those that outlive another one's failure.

Ranks that show no sign of life after another one has failed are terminated: they hold GPUs for
nothing, often until a timeout of half an hour.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.launchers import process_variables, rank_variables
from epochzero.platform import ProcessStatus, process_status
from epochzero.run.process.tree import below, send
from epochzero.run.process.usage import ProcessTree, environment_of
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobEvent, Record

_MOST_RANKS = 1024
_LAST_WORDS_S = 5.0
_LAST_WORDS = (
    b"Traceback (most recent call last)", b"Segmentation fault", b"Killed", b"Aborted",
    b"Bus error", b"core dumped", b"terminate called", b"Fatal Python error",
)  # fmt: skip
_LOOKS = 3
"""A process has the variables of its parent until it has become another program."""
_A_SAVE = 1 << 20
"""Bytes that ranks write in a second when they save something."""


_Key = tuple[int, int]
"""Of a process: its number and when it was started."""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """A process that is a rank.

    Attributes:
        number: the rank.
        process: that has it.
        launcher_grace_s: seconds that its launcher gives it to exit after another rank has failed.
    """

    number: int
    process: ProcessStatus
    launcher_grace_s: float


@dataclass(slots=True)
class _Loss:
    """A rank that failed.

    Attributes:
        rank: its number.
        others: those that continued, without processes that a launcher starts later.
        silent_since: when these last showed a sign of life.
        kill_at: when they are killed, after they were asked to end.
    """

    rank: int
    others: dict[_Key, RankProcess]
    silent_since: float
    kill_at: float | None = None


class RankWatcher(Watcher):
    """A watcher that ends ranks which outlive another one's failure without a sign of life.

    A rank has failed when its status tells so or, where its parent was quicker to take that, when a
    traceback or the like was printed just before it was gone.
    """

    def __init__(self, grace: float) -> None:
        """Nothing is looked at yet.

        Args:
            grace: seconds that the others may be silent, and again between SIGTERM and SIGKILL.
                Ranks that their launcher terminates itself are given its time, too.
        """
        self._grace = grace
        self._ranks: dict[_Key, RankProcess] = {}
        self._looks: Counter[_Key] = Counter()
        self._loss: _Loss | None = None
        self._last_words = self._wrote = float("-inf")
        self._written = 0

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """No rank is known yet."""
        self._clock = clock
        self._tree = ProcessTree(pid)
        return ()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Output is a sign of life; the last words of a rank are no other's."""
        now = self._clock.now()[1]
        self._wrote = now
        if self._ranks and any(words in data for words in _LAST_WORDS):
            self._last_words = now
        return ()

    def tick(self) -> Iterable[Record]:
        """Looks who is gone."""
        processes = self._tree.read()
        now = self._clock.now()[1]
        living = {(process.pid, process.started): process for process in processes}
        gone = [rank for key, rank in self._ranks.items() if key not in living]
        self._ranks = {key: rank for key, rank in self._ranks.items() if key in living}
        self._learn(living)
        saved = self._saved(processes)
        if self._loss is None:
            failed = next((rank for rank in gone if self._failed(rank, now)), None)
            return () if failed is None or not self._ranks else self._lost(failed, now)
        loss = self._loss
        loss.others = {key: rank for key, rank in loss.others.items() if key in living}
        if not loss.others:
            self._loss = None
        elif loss.kill_at is not None:
            if now >= loss.kill_at:
                self._send(signal.SIGKILL, loss, processes)
        elif self._wrote > loss.silent_since or saved:
            loss.silent_since = now
        elif now - loss.silent_since >= self._patience(loss):
            return self._end(loss, processes, now)
        return ()

    def _learn(self, living: Mapping[_Key, ProcessStatus]) -> None:
        """Takes note of new ranks."""
        self._looks = Counter({key: n for key, n in self._looks.items() if key in living})
        for key, process in living.items():
            if key in self._ranks or self._looks[key] >= _LOOKS or len(self._ranks) >= _MOST_RANKS:
                continue
            self._looks[key] += 1
            # An orphan is a helper that a rank has left, such as a logger's daemon.
            if process.parent != self._tree.root and (rank := rank_of(process)):
                self._ranks[key] = rank

    def _failed(self, rank: RankProcess, now: float) -> bool:
        left = process_status(rank.process.pid)
        if left is not None and left.started == rank.process.started and left.state == "Z":
            return left.status != 0
        return now - self._last_words < _LAST_WORDS_S

    def _saved(self, processes: Iterable[ProcessStatus]) -> bool:
        before, self._written = self._written, sum(process.written_bytes for process in processes)
        return self._written - before >= _A_SAVE

    def _lost(self, rank: RankProcess, now: float) -> Iterable[Record]:
        self._loss = _Loss(rank.number, dict(self._ranks), now)
        text = f"rank {rank.number} failed while {_numbers(self._loss)} continued"
        return (JobEvent(*self._clock.now(), "rank_lost", text, rank=rank.number),)

    def _patience(self, loss: _Loss) -> float:
        return self._grace + max(rank.launcher_grace_s for rank in loss.others.values())

    def _end(self, loss: _Loss, processes: Sequence[ProcessStatus], now: float) -> Iterable[Record]:
        loss.kill_at = now + self._grace
        self._send(signal.SIGTERM, loss, processes)
        silent = now - loss.silent_since
        text = (
            f"rank {loss.rank} failed, and {_numbers(loss)} showed no sign of life for"
            f" {silent:.0f} s: terminated"
        )
        return (JobEvent(*self._clock.now(), "ended_hung_ranks", text, rank=loss.rank),)

    def _send(self, number: int, loss: _Loss, processes: Sequence[ProcessStatus]) -> None:
        """Sends a signal to the other ranks and to all that they have started."""
        parents = [(process.pid, process.parent) for process in processes]
        for pid, _ in loss.others:
            send(number, [pid, *below(pid, parents)])


def _numbers(loss: _Loss) -> str:
    numbers = sorted(rank.number for rank in loss.others.values())
    return f"rank{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def rank_of(process: ProcessStatus) -> RankProcess | None:
    """The rank that a process is, as its variables say and not those of its parent; None for none."""
    environment = environment_of(process.pid)
    for name, size in rank_variables().items():
        number = environment.get(name, "")
        if not (_is_number(number) and _is_number(count := environment.get(size, ""))):
            continue
        # A launcher in a rank of another one, such as Hydra under srun, passes that one's variables on.
        if int(count) > 1 and environment_of(process.parent).get(name) != number:
            return RankProcess(int(number), process, _launcher_grace_s(environment))
    return None


def _launcher_grace_s(environment: Mapping[str, str]) -> float:
    known = (
        variable.grace_s for variable in process_variables() if variable.known_by in environment
    )
    return next(known, 0.0)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
