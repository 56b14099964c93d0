"""Ranks that are slower than the others, from which step on, and what for.

The job's processes time their own steps (`observers.child.steps`). In each window of some seconds a rank's time is
its own part of a step plus the shortest common part of all ranks: what the job would take if all were like it.

Sources: NVIDIA Resiliency Extension, straggler detection (relative scores against the median of the ranks);
TraceML (time of data, forward and backward passes of each rank).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low

from epochzero.injected.companions import Companion
from epochzero.run.observers.child.steps import FOLDER_VARIABLE, LAYOUT
from epochzero.run.observers.gpus import GpuReader
from epochzero.run.observers.stacks import StackReader
from epochzero.run.process.usage import scheduled
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import SLOW_RANK_EVENT, SLOW_RANKS_EVENT, JobEvent, Record

STEPS_COMPANION = Companion("torch", "epochzero.run.observers.child.steps:begin_torch")
STEPS_FOLDER = "steps"
"""In an attempt's folder."""
WINDOW_S = 10.0
_LEAST_STEPS = 3
_WINDOWS = 3
"""In a row, until a rank is reported: a checkpoint or an evaluation of one rank is over after one."""
SLOW = 1.2
"""Times the median; ranks of healthy trainings on a busy machine stayed below 1.1 in the lab."""
_THROTTLED = 0.9
"""Of the clock of the other GPUs."""
_STACKS = 10
_MOST_RANKS = 1024


def with_steps(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a job whose ranks time their steps; nothing changes where no folder can be made."""
    steps = folder / STEPS_FOLDER
    with suppress(OSError):
        steps.mkdir(exist_ok=True)
        return {**environment, FOLDER_VARIABLE: str(steps)}
    return dict(environment)


@dataclass(frozen=True, slots=True)
class RankSteps:
    """What a rank has done since it was started.

    Attributes:
        rank, pid: whose it is.
        gpu: index of its GPU; None without one.
        steps: that ended; timed: those with known times.
        total, own, data: seconds of the timed steps; own is without waiting for other ranks, and data, which
            the loader took, is a part of it on a processor.
        computed, waited: seconds that its main thread used a processor, and was ready and waited for one.
    """

    rank: int
    pid: int
    gpu: int | None
    steps: int
    timed: int
    total: float
    own: float
    data: float
    computed: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """A rank in a window.

    Attributes:
        rank, pid, gpu: as in `RankSteps`.
        first_step: of the window.
        seconds: of a step, if the job were like this rank; own, data: parts of it.
        ratio: seconds in relation to the median of the ranks.
        computing: seconds of a step in which it used a processor.
        waiting: the same in which it waited for one; both of its main thread, GPU or not.
    """

    rank: int
    pid: int
    gpu: int | None
    first_step: int
    seconds: float
    own: float
    data: float
    ratio: float
    computing: float
    waiting: float


def paces(before: Mapping[int, RankSteps], after: Mapping[int, RankSteps]) -> Sequence[Pace]:
    """The ranks in a window, by rank; none if one of them has made too few steps.

    Args:
        before, after: rank -> what it had done, at both ends of the window.
    """
    ranks = sorted(before.keys() & after.keys())
    count = {rank: after[rank].timed - before[rank].timed for rank in ranks}
    if len(ranks) < 2 or len(ranks) < len(after) or min(count.values()) < _LEAST_STEPS:
        return ()

    def each(field: str) -> dict[int, float]:
        return {
            rank: (getattr(after[rank], field) - getattr(before[rank], field)) / count[rank]
            for rank in ranks
        }

    steps = {rank: max(1, after[rank].steps - before[rank].steps) for rank in ranks}
    total, own, data = each("total"), each("own"), each("data")
    computing = {
        rank: (after[rank].computed - before[rank].computed) / steps[rank] for rank in ranks
    }
    for rank in ranks:
        # Gloo's threads wait for the other ranks and the main thread sleeps: where it computes in the backward pass, that
        # is the rank's own. On a GPU a main thread that waits computes all the same.
        if after[rank].gpu is None:
            own[rank] = max(own[rank], min(computing[rank], total[rank]))
    common = min(max(0.0, total[rank] - own[rank]) for rank in ranks)
    times = {rank: own[rank] + common for rank in ranks}
    found = []
    for rank in ranks:
        others = [times[other] for other in ranks if other != rank]
        # Of two ranks the other one is the measure.
        usual = median_low(times.values()) if len(ranks) > 2 else others[0]
        found.append(
            Pace(
                rank,
                after[rank].pid,
                after[rank].gpu,
                before[rank].steps + 1,
                times[rank],
                own[rank],
                data[rank],
                times[rank] / usual if usual > 0 else 1.0,
                computing[rank],
                (after[rank].waited - before[rank].waited) / steps[rank],
            )
        )
    return found


@dataclass(slots=True)
class _Streak:
    """Windows in a row in which a rank was slow."""

    since: int
    ratios: list[float]
    seconds: float = 0.0
    cause: str = ""
    reported: bool = False

    def text(self, rank: int, until: int | None = None) -> str:
        steps = (
            f"since about step {self.since:,}"
            if until is None
            else f"from about step {self.since:,} to {until:,}"
        )
        ratio = median(self.ratios)
        return f"rank {rank} {'has been' if until is None else 'was'} {ratio:.2g} times slower than the median {steps}{self.cause}"


class SlowRankWatcher(Watcher):
    """A watcher that reports ranks which are slower than the others, and why."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        gpus: int = 0,
        on_event: Callable[[JobEvent], object] = lambda _: None,
        window: float = WINDOW_S,
    ) -> None:
        """Nothing is read yet.

        Args:
            environment: of the job.
            gpus: that the job holds, for what slow ranks cost.
            on_event: is called with each report, from the watcher's thread.
            window: seconds.
        """
        self._environment = environment
        self._held = gpus
        self._on_event = on_event
        self._window = window
        self._before: Mapping[int, RankSteps] = {}
        self._last: Mapping[int, RankSteps] = {}
        self._began = 0.0
        self._streaks: dict[int, _Streak] = {}
        self._over: list[tuple[int, _Streak, int]] = []
        self._gpus: GpuReader | None = None

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """The first window begins."""
        self._clock = clock
        self._folder = folder / STEPS_FOLDER
        self._began = clock.now()[1]
        return ()

    def tick(self) -> Iterator[Record]:
        """Compares the ranks when a window is over and each has made enough steps in it."""
        now = self._clock.now()[1]
        if now - self._began < self._window:
            return
        after = read_steps(self._folder)
        if not self._before or self._before.keys() != after.keys():
            self._before, self._began = after, now
            return
        found = paces(self._before, after)
        if not found:
            return
        seconds = now - self._began
        self._last, self._before, self._began = after, after, now
        for pace in found:
            yield from self._judge(pace, found, seconds)

    def ended(self) -> Iterator[Record]:
        """Sums up which ranks were slow, and what that has cost."""
        for rank, streak in self._streaks.items():
            if streak.reported and rank in self._last:
                self._over.append((rank, streak, self._last[rank].steps))
        if not self._over:
            return
        text = "; ".join(streak.text(rank, until) for rank, streak, until in self._over)
        lost = sum(s.seconds * (1 - 1 / median(s.ratios)) for _, s, _ in self._over)
        hours = lost * self._held / 3600
        cost = (
            f"; about {hours:.2g} GPU hours were lost"
            if hours >= 0.01
            else f"; about {lost:.0f} s were lost"
        )
        yield self._event(
            SLOW_RANKS_EVENT, text + cost, self._over[0][0] if len(self._over) == 1 else None
        )

    def _judge(self, pace: Pace, every: Sequence[Pace], seconds: float) -> Iterator[Record]:
        streak = self._streaks.get(pace.rank)
        if pace.ratio < SLOW:
            if streak is not None:
                del self._streaks[pace.rank]
                if streak.reported:
                    self._over.append((pace.rank, streak, pace.first_step))
                    text = f"rank {pace.rank} is as fast as the others again since step {pace.first_step:,}"
                    yield self._event(SLOW_RANK_EVENT, text, pace.rank)
            return
        if streak is None:
            streak = self._streaks[pace.rank] = _Streak(pace.first_step, [])
        streak.ratios.append(pace.ratio)
        streak.seconds += seconds
        if len(streak.ratios) >= _WINDOWS and not streak.reported:
            streak.reported = True
            streak.cause = self._cause(pace, every)
            yield self._event(SLOW_RANK_EVENT, streak.text(pace.rank), pace.rank)

    def _event(self, what: str, text: str, rank: int | None) -> JobEvent:
        event = JobEvent(*self._clock.now(), what, text, rank=rank)
        self._on_event(event)
        return event

    def _cause(self, slow: Pace, every: Sequence[Pace]) -> str:
        """Why a rank is slow, as the end of a sentence; empty if nothing tells."""
        others = [pace for pace in every if pace.rank != slow.rank]
        usual_own, usual_data = (
            median(pace.own for pace in others), median(pace.data for pace in others)
        )  # fmt: skip
        if slow.data - usual_data > (slow.own - usual_own) / 2:
            return f": loading its data takes {_ms(slow.data)} per step, {_ms(usual_data)} on the others{self._place(slow)}"
        if clock := self._clock_of(slow, others):
            return clock
        more = slow.own - usual_own
        waits = slow.waiting - median(pace.waiting for pace in others)
        # Who computes more on a busy machine also waits more: that it computes is the cause.
        if waits > more / 2 and slow.computing < 1.5 * median(p.computing for p in others):
            return f": it waits {_ms(slow.waiting)} per step for a processor that other processes use{self._place(slow)}"
        own = f"{_ms(slow.own)} per step, the others {_ms(usual_own)}"
        return f": apart from waiting for other ranks, it takes {own}{self._place(slow)}"

    def _clock_of(self, slow: Pace, others: Sequence[Pace]) -> str:
        """That its GPU runs at a lower clock than the others', and why."""
        if slow.gpu is None:
            return ""
        if self._gpus is None:
            self._gpus = GpuReader(self._environment)
        read = self._gpus.read()
        # torch counts the visible GPUs in the order of their indices here.
        by_device = dict(enumerate(read))
        own = by_device.get(slow.gpu)
        clocks = [
            by_device[pace.gpu].clock_mhz or 0.0
            for pace in others
            if pace.gpu is not None and pace.gpu in by_device and pace.gpu != slow.gpu
        ]
        usual = median(clocks) if clocks else None
        if own is None or own.clock_mhz is None:
            return ""
        if own.throttled:
            than = f", the others {usual:.0f} MHz" if usual else ""
            return f": its GPU is throttled ({own.throttled}; {own.clock_mhz:.0f} MHz{than})"
        if usual and own.clock_mhz < _THROTTLED * usual:
            return (
                f": its GPU's clock is {own.clock_mhz:.0f} MHz, that of the others {usual:.0f} MHz"
            )
        return ""

    def _place(self, slow: Pace) -> str:
        """The user's line at which it is most often found outside of collectives, where py-spy can read it."""
        reader = StackReader(self._environment)
        places: Counter[str] = Counter()
        for _ in range(_STACKS if not reader.problem else 0):
            stack = reader.read(slow.pid)
            if stack.frames and not stack.collective:
                places[f"{stack.place} (`{stack.call}`)" if stack.call else stack.place] += 1
        if not places:
            return ""
        place, count = places.most_common(1)[0]
        return f", mostly at {place}" if count > sum(places.values()) / 2 else ""


def read_steps(folder: Path) -> dict[int, RankSteps]:
    """Rank -> what it has done, of the ranks of this node; of one that was started again the latest process."""
    found: dict[int, tuple[float, RankSteps]] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if len(found) >= _MOST_RANKS:
                break
            with suppress(OSError), open(entry.path, "rb") as file:
                data = file.read(LAYOUT.size)
                if len(data) == LAYOUT.size and any(data):
                    rank, _, pid, gpu, steps, timed, total, own, part, last, _ = LAYOUT.unpack(data)
                    known = RankSteps(
                        rank,
                        pid,
                        None if gpu < 0 else gpu,
                        steps,
                        timed,
                        total,
                        own,
                        part,
                        *scheduled(pid),
                    )
                    if last >= found.get(rank, (0.0, known))[0]:
                        found[rank] = last, known
    return {rank: known for rank, (_, known) in found.items()}


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
