"""Jobs that hang: none of their ranks makes progress, and why that is.

A job is sampled when it has been silent for half of its limit, and again at each further quarter. It
hangs if it is silent for the limit and in all samples each rank's stack is the same, without use
of processors, transfers of data, collectives that complete, or a main thread that wakes up by itself. A rank that
computes on one line, reads slowly or sleeps until a file exists makes progress, unless a collective of it is pending. One that only
wakes up while all others wait for it in collectives polls for something, which is a hang after four times the limit. Equal stacks of many
ranks are one group: the smallest group outside of a collective is what the others wait for (`hang_report`).

Grouping of stacks to find outliers: Wan et al., ByteRobust, SOSP 2025.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epochzero.injected.companions import AT_START, Companion
from epochzero.launchers import names_where
from epochzero.platform import ProcessStatus, name_of
from epochzero.run.observers import nccl_ras
from epochzero.run.observers.child.stacks import FILE_VARIABLE
from epochzero.run.observers.collectives import ask_for_dumps, read_dumps
from epochzero.run.observers.gpus import GpuReader
from epochzero.run.observers.hang_report import HungRank, groups_of, log_of, report_of, who
from epochzero.run.observers.kernel_waits import sleeps, waits_for
from epochzero.run.observers.ranks import rank_of
from epochzero.run.observers.slow_ranks import STEPS_FOLDER, read_steps
from epochzero.run.observers.stacks import Stack, StackReader
from epochzero.run.process.tree import below
from epochzero.run.process.usage import ProcessTree, is_python, scheduled, switches_of
from epochzero.run.process.watcher import EndJob, Watcher, load
from epochzero.run.records.clock import Clock
from epochzero.run.records.identity import PROGRESS_FILE
from epochzero.run.records.model import HANG_EVENT, HANG_OVER_EVENT, JobEvent, Record

OnHang = Literal["report", "dump", "kill", "restart"]

_State = Literal["moves", "computes", "wakes", "blocked"]

HUNG = "hang"
"""Why a job was ended, as in `Ended.why`."""
HANG_CODE = 80
"""Exit code of a job that was terminated because it hung; 79 is that of a training fault."""
HANG_FILE = "hang.txt"
"""In an attempt's folder while it hangs: what its diagnosis reads."""

_BUSY_CORES = 0.05
"""Threads of Gloo, NCCL and of rendezvous that keep a connection alive use 0.002 of a core."""
_TICK_S = 0.01
"""The time that a thread of a busy machine is scheduled for."""
_BUSY_BYTES = 1 << 16
_BUSY_GPU = 1.0
"""Percent; a GPU that waits for another one in a collective is busy, too."""
_INTERRUPTED_S = 15.0
"""More than `--grace` gives a job by default: ranks that die of Ctrl-C move, too."""
_SETTLE_S = 0.5
_MOST_RANKS = 256
_MOST_CHILDREN = 64
_SHORT = 4000
_PATIENCE_FOR_SLEEP = 4
"""Times the limit: who sleeps or polls may go on by itself, but not in a time that anyone would wait."""
STACKS_COMPANION = Companion(AT_START, "epochzero.run.observers.child.stacks:begin_python")
STACKS_FILE = "stacks.txt"
"""In an attempt's folder: where its processes write their stacks when asked."""


def with_stacks(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a job whose companion answers when it is asked for stacks."""
    return {**environment, FILE_VARIABLE: str(folder / STACKS_FILE)}


@dataclass(frozen=True, slots=True)
class _RankUsage:
    """What a rank and the processes that it started have used so far.

    Attributes:
        cpu_seconds, transferred_bytes: of all.
        switches: of each process's main thread.
        main: seconds that the rank's main thread used a processor, and waited for one.
    """

    cpu_seconds: float
    transferred_bytes: int
    switches: Mapping[int, int]
    main: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _RankSample(HungRank):
    """A rank in a sample.

    Attributes:
        use: until the stacks were read.
        after: the same when they had been read: reading them stops a process, which counts as switches.
        sleeps: whether its main thread waits for a time only.
        woken: whether a thread for which its main thread waits has woken up since the last sample.
        threads: thread -> how often it has given up the processor, of those that run code of the user.
    """

    use: _RankUsage
    after: _RankUsage
    sleeps: bool
    woken: bool
    threads: Mapping[int, int]

    def waits_for_others(self, pid: int) -> bool:
        """Whether one of its processes only waits, so that to wake up is no progress of it."""
        stack = self.stack if pid == self.pid else self.children.get(pid)
        return stack is not None and stack.waits_for_others


@dataclass(slots=True)
class _BlockedSamples:
    """Samples in which nothing moves.

    Attributes:
        since, last: when the first and the last one were taken.
        ranks: the last one.
        polls: whether a rank woke up by itself, while the others waited for it.
    """

    since: float
    last: float
    ranks: Sequence[_RankSample]
    polls: bool = False


class HangWatcher(Watcher):
    """A watcher that reports when no rank of a job makes progress, and which rank the others wait for.

    A hang is reported again after twice the time, and so on, and when it is over.
    """

    def __init__(
        self,
        after: float,
        environment: Mapping[str, str],
        *,
        rank: int | None = None,
        on_hang: OnHang = "report",
        on_event: Callable[[JobEvent], object] = lambda _: None,
    ) -> None:
        """Nothing is inspected yet.

        Args:
            after: seconds without progress until it is a hang.
            environment: of the job.
            rank: which one this job is; None where it has all its ranks, or none.
            on_hang: what is done beyond the report.
            on_event: is called with each report, from the watcher's thread.
        """
        self._after = self._next_report = after
        self._environment = environment
        self._number = rank
        self._on_hang = on_hang
        self._on_event = on_event
        self._gpus: GpuReader | None = None
        self._blocked: _BlockedSamples | None = None
        self._hung: frozenset[int] = frozenset()
        self._moving_since: float | None = None
        self._details: Mapping[str, str] = {}
        self._reported_size = (0, 0)

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """The time begins."""
        self._clock = clock
        self._folder = folder
        self._tree = ProcessTree(pid)
        self._stacks = StackReader(self._environment, folder / STACKS_FILE)
        self._progress = clock.now()[1]
        self._next_sample = self._progress + self._after / 2
        return ()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """A job that prints makes progress; of one that hangs the next sample decides."""
        if not self._hung:
            self._advance(self._clock.now()[1])
        return ()

    def tick(self) -> Iterator[Record]:
        """Samples the job when it is due."""
        now = self._clock.now()[1]
        if now < self._next_sample:
            return
        self._next_sample = now + self._after / 4
        processes = self._tree.read()
        ranks = self._sample(processes)
        if self._blocked is None:
            self._blocked = _BlockedSamples(now, now, ranks)
            return
        if self._moves(self._blocked, processes, ranks, now):
            yield from self._over(ranks, now)
            if self._hung:
                self._blocked = _BlockedSamples(now, now, ranks)
            else:
                self._advance(now)
            return
        self._moving_since = None
        self._blocked.last, self._blocked.ranks = now, ranks
        # A second's tick comes early or late.
        long_enough = now - self._blocked.since >= self._after / 2 - 0.5
        patience = _PATIENCE_FOR_SLEEP if self._blocked.polls or _all_sleep(ranks) else 1
        if not long_enough or now - self._progress < self._next_report * patience:
            return
        self._next_report *= 2
        yield from self._report(ranks, now)

    def _advance(self, now: float) -> None:
        self._progress = now
        self._next_report = self._after
        self._next_sample = now + self._after / 2
        self._blocked = None

    def _sample(self, processes: Sequence[ProcessStatus]) -> Sequence[_RankSample]:
        """The ranks, or the job as a whole where it has none; none where its work is elsewhere."""
        load("epochzero.diagnose")
        parents = [(process.pid, process.parent) for process in processes]
        known = {process.pid: process for process in processes}
        numbers = {p.pid: found.number for p in processes if (found := rank_of(p))}
        if not numbers:
            # Processes elsewhere do their work, and this tree does not contain them.
            remote = names_where("processes") | {"ssh"}
            if any(name_of(process.pid) in remote for process in processes):
                return ()
            owners = {pid: (self._number, list(known)) for pid in _leader(processes)}
        else:
            first = sorted(numbers.items(), key=lambda item: item[1])[:_MOST_RANKS]
            owners = {pid: (number, [pid, *below(pid, parents)]) for pid, number in first}
        before = {rank.pid: rank for rank in (self._blocked.ranks if self._blocked else ())}
        woken = {main: _threads_woke(before.get(main)) for main in owners}
        uses = {main: _use(main, [known[pid] for pid in own]) for main, (_, own) in owners.items()}
        read = {
            pid: self._stacks.read(pid)
            for main, (_, own) in owners.items()
            for pid in [main, *_children(main, own)]
        }
        ask_for_dumps(self._folder, owners)
        # A stopped process counts its switch once it runs again.
        time.sleep(_SETTLE_S)
        dumps = read_dumps(self._folder, owners)
        return tuple(
            _RankSample(
                number,
                main,
                read[main],
                {pid: read[pid] for pid in _children(main, own) if pid in read},
                _waits([main, *_children(main, own)], read, list(known)),
                uses[main],
                _use(main, [known[pid] for pid in own]),
                read[main].sleeps or sleeps(main),
                woken[main],
                {thread: switches_of(thread) for thread in read[main].threads},
                dump=dumps.get(main),
            )
            for main, (number, own) in owners.items()
        )

    def _moves(
        self,
        blocked: _BlockedSamples,
        processes: Sequence[ProcessStatus],
        ranks: Sequence[_RankSample],
        now: float,
    ) -> bool:
        """Whether anything has moved since the last sample."""
        size = self._size_of_progress()
        reported, self._reported_size = size != self._reported_size, size
        before = {rank.pid: rank for rank in blocked.ranks}
        if reported or not ranks or before.keys() != {rank.pid for rank in ranks}:
            return True
        # By Ctrl-Z or a scheduler.
        if all(process.state == "T" for process in processes):
            return True
        seconds = now - blocked.last
        states = {rank.pid: _state(before[rank.pid], rank, seconds) for rank in ranks}
        awake = {pid for pid, state in states.items() if state == "wakes"}
        others = [rank for rank in ranks if rank.pid not in awake]
        waited_for = bool(others) and all(rank.collective for rank in others)
        if "moves" in states.values() or (awake and not waited_for):
            return True
        gpus = self._busy_gpus()
        if awake and gpus > len(others):
            return True  # It waits for its own GPU, which computes.
        blocked.polls = blocked.polls or bool(awake)
        if not gpus:
            return "computes" in states.values()
        # On a GPU a rank that waits in a collective computes all the same. Only its recorder, or a rank that waits
        # for something else, tells such a wait from work.
        still = ("blocked", "wakes")
        if all(states[r.pid] in still or (r.dump and r.dump.pending) for r in ranks):
            return False
        outliers = [rank for rank in ranks if states[rank.pid] in still and not rank.collective]
        return not outliers or len(ranks) == len(outliers)

    def _busy_gpus(self) -> int:
        if self._gpus is None:
            self._gpus = GpuReader(self._environment)
        return sum(gpu.utilization >= _BUSY_GPU for gpu in self._gpus.read())

    def _size_of_progress(self) -> tuple[int, int]:
        """Bytes of the job's own reports, and steps that its ranks have made."""
        steps = sum(rank.steps for rank in read_steps(self._folder / STEPS_FOLDER).values())
        with suppress(OSError):
            return (self._folder / PROGRESS_FILE).stat().st_size, steps
        return 0, steps

    def _over(self, ranks: Sequence[_RankSample], now: float) -> Iterator[Record]:
        """The hang is over if those that hung work for longer than an interrupted job takes to exit."""
        if not self._hung or not self._hung <= {rank.pid for rank in ranks}:
            return
        if self._moving_since is None:
            self._moving_since = now
        if now - self._moving_since < _INTERRUPTED_S:
            return
        silent, self._progress = self._moving_since - self._progress, now
        self._hung, self._moving_since, self._details = frozenset(), None, {}
        with suppress(OSError):
            (self._folder / HANG_FILE).unlink(missing_ok=True)
        yield self._event(HANG_OVER_EVENT, f"the job makes progress again after {silent:.0f} s")

    def _report(self, ranks: Sequence[_RankSample], now: float) -> Iterator[Record]:
        report = report_of(ranks)
        silent = now - self._progress
        when = time.strftime("%H:%M:%S", time.localtime(time.time() - silent))
        text = f"no progress for {silent:.0f} s since {when}: {report.text}"
        if not any(rank.stack.frames for rank in ranks) and self._stacks.problem:
            text += f". {self._stacks.problem[0].upper()}{self._stacks.problem[1:]}"
        self._hung = frozenset(rank.pid for rank in ranks)
        self._store(ranks, report.first, text, now)
        details = {who(group): group[0].shown[:_SHORT] for group in groups_of(ranks)}
        if ras := nccl_ras.reported(self._environment, self._hung):
            details["NCCL"] = ras[:_SHORT]
        known, self._details = self._details == details, details
        yield self._event(HANG_EVENT, text, report.rank, {} if known else details)
        if self._on_hang in ("kill", "restart"):
            raise EndJob(HUNG, HANG_CODE, f"the job was terminated because it hung: {report.text}")

    def _event(
        self,
        what: str,
        text: str,
        rank: int | None = None,
        details: Mapping[str, str] | None = None,
    ) -> JobEvent:
        event = JobEvent(*self._clock.now(), what, text, rank=rank, details=details or {})
        self._on_event(event)
        return event

    def _store(self, ranks: Sequence[_RankSample], first: HungRank, text: str, now: float) -> None:
        # A full disk costs the files; the beginning of each group is in the event.
        folder = self._folder / "stacks"
        with suppress(OSError):
            (self._folder / HANG_FILE).write_text(log_of(first, text), "utf-8")
            folder.mkdir(exist_ok=True)
            for rank in ranks:
                for pid, stack in {rank.pid: rank.stack, **rank.children}.items():
                    native = self._stacks.native(pid) if self._on_hang != "report" else ""
                    content = f"{stack.text}\n\n{native}".rstrip() + "\n"
                    (folder / f"{now:.0f}s-{pid}.txt").write_text(content, "utf-8")


def _state(before: _RankSample, after: _RankSample, seconds: float) -> _State:
    """What a rank did between two samples."""
    old, new = before.after, after.use
    if before.signature != after.signature or old.switches.keys() != new.switches.keys():
        return "moves"
    if before.dump and after.dump and before.dump.calls != after.dump.calls:
        return "moves"
    if new.transferred_bytes - old.transferred_bytes >= _BUSY_BYTES:
        return "moves"
    woken = [pid for pid, count in new.switches.items() if count > old.switches[pid]]
    # To wake up while a collective is pending is to poll for it.
    polls = after.dump is not None and after.dump.pending is not None
    wakes = not polls and any(not after.waits_for_others(pid) for pid in woken)
    # On a busy machine a thread that computes may get little of a processor, but it does not wait for anything else.
    computed, waited = (now - then for now, then in zip(new.main, old.main, strict=True))
    cores = max(
        (new.cpu_seconds - old.cpu_seconds) / seconds, computed / max(seconds - waited, _TICK_S)
    )
    computes = cores >= _BUSY_CORES
    if (after.woken and not polls) or (wakes and computes):
        return "moves"
    return "wakes" if wakes else "computes" if computes else "blocked"


def _threads_woke(before: _RankSample | None) -> bool:
    """Whether a thread that a rank waits for, as one that reads for it, has gone on since it was sampled."""
    if before is None or not before.stack.waits_for_threads:
        return False
    return any(0 < count < switches_of(thread) for thread, count in before.threads.items())


def _use(main: int, own: Sequence[ProcessStatus]) -> _RankUsage:
    return _RankUsage(
        cpu_seconds=sum(process.cpu_seconds for process in own),
        transferred_bytes=sum(process.transferred_bytes for process in own),
        switches={process.pid: switches_of(process.pid) for process in own},
        main=scheduled(main),
    )


def _children(main: int, own: Iterable[int]) -> Sequence[int]:
    """The Python processes that a rank has started, as far as they are inspected."""
    return [pid for pid in own if pid != main and is_python(pid)][:_MOST_CHILDREN]


def _leader(processes: Sequence[ProcessStatus]) -> Sequence[int]:
    """The process whose stack stands for a job without ranks: the first Python, else the first of all."""
    python = [process for process in processes if is_python(process.pid)]
    return [process.pid for process in sorted(python or processes, key=lambda p: p.started)[:1]]


def _waits(
    own: Iterable[int], read: Mapping[int, Stack], known: Sequence[int]
) -> Mapping[int, str]:
    """What the kernel knows of the processes of a rank that block outside a collective."""
    found = {}
    for pid in own:
        if pid in read and not read[pid].collective and (what := waits_for(pid, known)):
            found[pid] = what
    return found


def _all_sleep(ranks: Sequence[_RankSample]) -> bool:
    outliers = [rank for rank in ranks if not rank.collective]
    return bool(outliers) and all(rank.sleeps for rank in outliers)
