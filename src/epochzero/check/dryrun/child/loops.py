"""Shortens the user's loops at run time: the first iterations, those that tests ask for, the last.

A loop in whose body a batch is drawn, a model called or an optimizer stepped does *work*. It runs
its first iterations, as many as a moment allows: a small job is run whole. Then those in which a test of its body (`rewrite` collects them) comes out as
it has not before, such as ``epoch % save_every == 0``; then its last, so that what a job does at its
end is run too. Schedulers of learning rates are stepped over what is left out. Other loops run in full, unless they take too long. Loops in the ``forward`` of a
model are part of the model and never shortened, nor are those that feed a consumer.
"""

from __future__ import annotations

import builtins
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from epochzero.check.dryrun.child.agreement import Agreement
from epochzero.check.dryrun.child.emit import RecordPipe
from epochzero.check.dryrun.child.kept import Find, Gap, Growth, IterationMemory, Lists, filled
from epochzero.check.dryrun.child.sources import UNKNOWN, Enumerated, Source, source_of

FIRST = 2
SMALL = 5
MOST_JUMPS = 8
FARTHEST = 100_000
LOOK_AHEAD_S = 0.2
IDLE_SHARE = 0.3
HURRY_SHARE = 0.5
LATE_SHARE = 0.7
PATIENCE_SHARE = 0.02
BUSY = 8
"""A wall-clock limit is this many times longer, because other programs run at the same time."""
LONGEST_ADVANCE_S = 0.5

Test = Callable[[Any, int], Any]
Scheduler = Callable[[], Any]


class OutOfTime(BaseException):
    """The time of the dry run is over; not an error of the job."""


class Runtime:
    """What the loops of a job share; the rewritten code knows it as ``__epochzero__``.

    Args:
        records: where to write.
        seconds: the time of the dry run.
        whole: no loop is shortened.
        patience: the share of the time that a loop may take before it is shortened.
        often: how often a loop that is shortened sees the same before it jumps ahead.

    Attributes:
        taken: how many iterations were run of loops.
        schedulers: that loops surely step, by their identity, with their count when first seen.
        stepped: the same of all that the user's code was seen to step.
        work: how much work was done: batches drawn, models called, optimizers stepped.
        steps: how often an optimizer stepped.
        depth: how many modules are being called, one in the other.
        exchanges: number of calls of collectives.
        visited: lines of the user's code that called a collective or backward.
        agreement: with other ranks on what is skipped; None for a single process.
        skipped: whether an iteration was left out anywhere.
        jumps: how often iterations were left out.
        trace: of the pretended GPU, if there is one.
    """

    def __init__(
        self,
        records: RecordPipe,
        seconds: float,
        *,
        whole: bool = False,
        patience: float = PATIENCE_SHARE,
        often: int = 1,
    ) -> None:
        self.records = records
        self.work = self.steps = self.depth = self.taken = self.jumps = 0
        self.schedulers: dict[int, tuple[Any, int]] = {}
        self.stepped: dict[int, tuple[Any, int]] = {}
        self.trace: Any = None
        self.skipped = False
        self.whole = whole
        # Another run only has to take another number of iterations; time is short.
        self.patience = patience if often == 1 else 0.0
        self.often = often
        self.exchanges = 0
        self.visited: set[tuple[str, int]] = set()
        self.agreement: Agreement | None = None
        self._shortened: set[tuple[str, int, bool]] = set()
        self._passed: set[tuple[str, int]] = set()
        self._runs: Counter[tuple[str, int]] = Counter()
        self._gaps: dict[tuple[str, int], list[Gap]] = {}
        self._began = time.monotonic()
        self._seconds = seconds

    def passed(self, path: str, line: int, value: Any = None) -> Any:
        """Note that a line has run that a rule claims to fail; the value of its expression."""
        if (path, line) not in self._passed:
            self._passed.add((path, line))
            self.records.emit("passed", path=path, line=line)
        return value

    def loop(
        self,
        path: str,
        line: int,
        end: int,
        kind: str,
        tests: tuple[Test, ...],
        schedulers: tuple[Scheduler, ...] = (),
        lists: tuple[Find, ...] = (),
        ends_itself: bool = False,
        counted: tuple[int, ...] = (),
        nested: tuple[Find, ...] = (),
    ) -> Loop:
        """The limiter of one run of a loop."""
        return Loop(
            self,
            path,
            line,
            end,
            kind,
            tests,
            schedulers,
            lists,
            ends_itself=ends_itself,
            counted=counted,
            nested=nested,
        )

    def comprehension(self, path: str, line: int, end: int, number: int) -> Loop:
        """The limiter of one run of a comprehension's loop, which has this number in its file."""
        loop = Loop(self, path, line, end, "comprehension", (), (), ())
        self._gaps[path, number] = loop.gaps
        return loop

    def filled(self, path: str, number: int, made: Any) -> Any:
        """What a comprehension made, as long as it would be with the iterations that were left out."""
        return filled(made, self._gaps[path, number], real=self.trace is None)

    def mapped(self, path: str, line: int, end: int, function: Any, *arguments: Any) -> Any:
        """``map(call, items)`` of the user's code, unless the name means something else there."""
        if function is not builtins.map:
            return function(*arguments)
        call, items = arguments
        loop = Loop(self, path, line, end, "comprehension", (), (), ())
        made = (call(item) for item in loop.over(items))
        return filled(made, loop.gaps, real=self.trace is None)

    def enumerated(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """``enumerate(...)`` of the user's code, unless the name means something else there."""
        made = Enumerated if function is builtins.enumerate else function
        return made(*arguments, **options)

    def run_of(self, path: str, line: int) -> str:
        """The name of one run of a loop, the same on all ranks."""
        self._runs[path, line] += 1
        return f"{path}:{line}:{self._runs[path, line]}"

    def exchange(self, place: tuple[str, int]) -> None:
        """A line of the user's code exchanges data with other ranks."""
        self.exchanges += 1
        self.visited.add(place)

    def steps_scheduler(self, scheduler: Any) -> None:
        """The user's code is about to step a scheduler."""
        if isinstance(getattr(scheduler, "last_epoch", None), int):
            self.stepped.setdefault(id(scheduler), (scheduler, scheduler.last_epoch))

    def shorten(self, path: str, line: int, total: int | None, *, work: bool, cut: bool) -> None:
        """A loop leaves iterations out, or is cut off; each is recorded once for each loop."""
        self.skipped = True
        self.jumps += 1
        if (path, line, cut) not in self._shortened:
            self._shortened.add((path, line, cut))
            self.records.emit(
                "shortened", path=path, line=line, total=total or 0, work=work, cut=cut
            )

    @property
    def used(self) -> float:
        """Which share of the time is used up."""
        return (time.monotonic() - self._began) / self._seconds

    @property
    def worked(self) -> float:
        """The same by the processor's time of this thread, which a busy machine does not change."""
        return max(time.thread_time() / self._seconds, self.used / BUSY)


class Loop:
    """One run of one loop.

    Attributes:
        line, end: of the loop in its file.
        ends_itself: whether what happens in it decides when it ends.
        skipped: how many iterations were left out before the present one.
        gaps: where iterations were left out.
    """

    def __init__(
        self,
        runtime: Runtime,
        path: str,
        line: int,
        end: int,
        kind: str,
        tests: tuple[Test, ...],
        schedulers: tuple[Scheduler, ...],
        lists: tuple[Find, ...],
        *,
        ends_itself: bool = False,
        counted: tuple[int, ...] = (),
        nested: tuple[Find, ...] = (),
    ) -> None:
        self.ends_itself = ends_itself
        self._growth = Growth(nested)
        self._times = dict.fromkeys(counted, 0)
        self.line, self.end, self.skipped = line, end, 0
        self.gaps: list[Gap] = []
        self._path, self._kind, self._tests = path, kind, tests
        self._runtime = runtime
        self._run = runtime.run_of(path, line) if runtime.agreement else ""
        self._schedulers = schedulers
        self._work, self._steps = runtime.work, runtime.steps
        self._began, self._worked = runtime.used, runtime.worked
        self._taken = self._jumps = 0
        self._is_cut = False
        self._outcomes: list[Counter[bool]] = [Counter() for _ in tests]
        self._epochs: dict[int, int] = {}
        self._steps_of: Counter[int] = Counter()
        self._known_jumps = runtime.jumps
        self._whole = runtime.whole or runtime.depth > 0
        sure = kind == "comprehension"
        trace = runtime.trace
        self._lists = Lists(lists, real=trace is None)
        self._kept = None if trace is None else IterationMemory(trace, self._lists, sure=sure)

    @property
    def path(self) -> str:
        """Its file."""
        return self._path

    @property
    def taken(self) -> int:
        """Number of iterations that were begun."""
        return self._taken

    @property
    def trains(self) -> bool:
        """Whether an optimizer stepped in it."""
        return self._runtime.steps > self._steps

    def over(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """The items of a ``for`` loop that are run."""
        if self._whole:
            for item in iterable:
                self._check_time()
                yield item
            return
        source = source_of(iterable)
        while (ahead := self._agreed(self._ahead(source))) is not None:
            try:
                item = self._drawn(source, ahead)
            except StopIteration:
                return
            yield item
        self._stop(source)

    def _drawn(self, source: Source, ahead: int) -> Any:
        self._take(source, ahead)
        return source.draw(ahead)

    def goes_on(self) -> bool:
        """Whether a ``while`` loop is run once more, if its own test says so too."""
        if self._whole:
            self._check_time()
            return True
        source = _Coming(self)
        ahead = self._agreed(self._ahead(source))
        if ahead is not None:
            self._take(source, ahead)
        else:
            self._stop(source)
        return ahead is not None

    def _agreed(self, ahead: int | None) -> int | None:
        """How many iterations all ranks leave out, if the loop does work."""
        agreement = self._runtime.agreement
        if agreement is None or not self._is_work():
            return ahead
        return agreement.decide(f"{self._run}:{self._taken}", ahead)

    def _take(self, source: Source, ahead: int) -> None:
        """The next iteration begins, after some that are left out."""
        if self._tests and (self._taken < self._first or self._is_work()):
            self._note(source, ahead)
        self._advance(ahead)
        self._growth.begins(ahead)
        if ahead:
            self._count(source, ahead)
            self._tell(source)
            self._leave_out(ahead)
        if self._kept:
            self._kept.begins()
        self._lists.begins()
        self._known_jumps = self._runtime.jumps
        self.skipped = ahead
        self._taken += 1
        self._runtime.taken += 1

    def times(self, number: int) -> int:
        """In how many of the iterations that were left out before the present one a test holds."""
        return self._times[number]

    def grown(self, number: int, iterations: int) -> int:
        """By how much loops within this one would advance a counter in so many of its iterations."""
        return self._growth.after(number, iterations)

    def add_again(self, find: Find, number: int) -> None:
        """The same for a list to which an iteration adds if the test holds: as many more of its last item."""
        self._lists.add_again(find, self._times[number])

    def _count(self, source: Source, ahead: int) -> None:
        self._times = dict.fromkeys(self._times, 0)
        until = time.monotonic() + LOOK_AHEAD_S
        done = 0
        while self._times and done < ahead and time.monotonic() < until:
            for number, outcome in self._evaluated(source, done):
                if outcome and number in self._times:
                    self._times[number] += 1
            done += 1
        # Of a loop that is too long the rest is taken to be like its start.
        scale = ahead / done if done else 1.0
        self._times = {number: round(count * scale) for number, count in self._times.items()}

    def _advance(self, ahead: int) -> None:
        """Steps each scheduler as often as the iterations that are left out would have."""
        known = self._runtime.schedulers
        for find in self._schedulers:
            with suppress(NameError, AttributeError):
                scheduler = find()
                if isinstance(scheduler.last_epoch, int):
                    known.setdefault(id(scheduler), (scheduler, scheduler.last_epoch))
        for number, (scheduler, begun) in (self._runtime.stepped | known).items():
            # What was stepped before this loop, it did not step.
            since = self._epochs.get(number, begun if self._taken else scheduler.last_epoch)
            steps = scheduler.last_epoch - since
            # Several steps are those of a loop within, which counts where it was run whole.
            if number not in known and steps > 1 and self._runtime.jumps == self._known_jumps:
                self._steps_of[number] = steps
            _step(scheduler, ahead * (steps if number in known else self._steps_of[number]))
            self._epochs[number] = scheduler.last_epoch

    def _ahead(self, source: Source) -> int | None:
        """How many iterations are left out before the next; None to end."""
        self._check_time()
        self._growth.ends()
        if not self._is_work():
            idles = self._runtime.used - self._began > IDLE_SHARE
            return self._cut(source) if idles else 0
        if self._is_one_of_two(source) or self._is_episode():
            return 0
        if self._runtime.used > LATE_SHARE:
            return self._cut(source)
        if self._taken < self._first:
            return 0
        if self._runtime.used > HURRY_SHARE:
            return self._last(source)
        patient = self._runtime.worked - self._worked < self._runtime.patience
        if patient or self._is_small(source):
            return 0
        self._jumps += 1
        if self._jumps <= MOST_JUMPS and (ahead := self._telling(source)) is not None:
            return ahead
        return self._last(source)

    def _last(self, source: Source) -> int | None:
        """How many iterations are left out before the last; the loop ends here where that is not known."""
        return source.left - 1 if source.left else self._end(source)

    def _end(self, source: Source) -> int | None:
        """The loop ends here, if it may: what never ends by itself is left by other means."""
        return 0 if source.endless or source.left == 0 else None

    def _cut(self, source: Source) -> int | None:
        """The same because too much of the time is used up: not even the last iteration is run."""
        ahead = self._end(source)
        self._is_cut = ahead is None
        return ahead

    def _stop(self, source: Source) -> None:
        """The loop has ended early."""
        self._tell(source)
        self._leave_out(source.left or 0)

    def _leave_out(self, count: int) -> None:
        if self._kept and count:
            self._kept.ends()
            self._kept.left_out(count)
        elif count:
            self._lists.left_out(count)
        self.gaps.append((self._taken, count))

    @property
    def _first(self) -> int:
        return FIRST - 1 + self._runtime.often

    def _is_work(self) -> bool:
        return self._taken > 0 and self._runtime.work > self._work

    def _is_one_of_two(self, source: Source) -> bool:
        """Whether it has at most two iterations, such as training and validation, which differ."""
        return source.left is not None and source.left > 0 and self._taken + source.left <= FIRST

    def _is_episode(self) -> bool:
        """Whether it ends itself inside another loop, which is shortened instead.

        A loop of training that stops early is no episode: optimizers step in a ``for`` loop.
        """
        if not self.ends_itself or (self._kind in ("whole", "first") and self.trains):
            return False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if any(loop is not self for loop in limiters(frame, frame.f_lineno)):
                return True
            frame = frame.f_back
        return False

    def _is_small(self, source: Source) -> bool:
        return source.left is not None and self._taken + source.left <= SMALL

    def _telling(self, source: Source) -> int | None:
        """How far the first iteration is in which a test comes out as it has not before."""
        until = time.monotonic() + LOOK_AHEAD_S
        farthest = FARTHEST if source.left is None else min(source.left, FARTHEST)
        for ahead in range(farthest):
            if self._new(source, ahead):
                return ahead
            if time.monotonic() > until:
                return None
        return None

    def _new(self, source: Source, ahead: int) -> bool:
        outcomes = self._evaluated(source, ahead)
        return any(
            outcome is not None and self._outcomes[number][outcome] < self._runtime.often
            for number, outcome in outcomes
        )

    def _note(self, source: Source, ahead: int) -> None:
        for number, outcome in self._evaluated(source, ahead):
            if outcome is not None:
                self._outcomes[number][outcome] += 1

    def _evaluated(self, source: Source, ahead: int) -> Iterator[tuple[int, bool | None]]:
        part = "first" if self._kind == "first" else "whole"
        for number, test in enumerate(self._tests):
            try:
                yield number, bool(test(source.value(ahead, part), ahead))
            except Exception:
                yield number, None

    def holds(self, ahead: int) -> bool:
        """Whether the test of a ``while`` loop, its first, would hold after so many iterations."""
        try:
            return bool(self._tests[0](UNKNOWN, ahead))
        except Exception:
            return False

    @property
    def kind(self) -> str:
        """``whole`` and ``first`` of ``for`` loops; ``tested``, ``endless`` and ``while``."""
        return self._kind

    def _check_time(self) -> None:
        if self._runtime.used > 1:
            raise OutOfTime

    def _tell(self, source: Source) -> None:
        """Records that iterations are left out."""
        total = None if source.left is None else self._taken + source.left
        self._runtime.shorten(self._path, self.line, total, work=self._is_work(), cut=self._is_cut)


def loops_around(frames: Iterable[tuple[FrameType, int]]) -> Iterator[dict[str, Any]]:
    """The loops of the user's code that frames are in, innermost first, as records show them."""
    for frame, line in frames:
        for loop in limiters(frame, line):
            yield {"path": loop.path, "line": loop.line, "end": loop.end, "taken": loop.taken}


def limiters(frame: FrameType, line: int) -> Iterator[Loop]:
    """The limiters of the loops that a line of a frame is in."""
    for value in list(frame.f_locals.values()):
        if isinstance(value, Loop) and value.line <= line <= value.end:
            yield value


class _Coming(Source):
    """The coming iterations of a ``while`` loop: as many as its test, if it is known, lets run."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.endless = loop.kind == "endless"

    @property
    def left(self) -> int | None:
        return _reach(self._loop.holds) if self._loop.kind == "tested" else None


def _step(scheduler: Any, times: int) -> None:
    """Steps a scheduler; what it raises, it raises again at the user's next step.

    One with an end (OneCycleLR) makes only the last step: its rate follows from the number of the step, and two runs
    agree on that number whatever the speed of the machine.
    """
    has_end = hasattr(scheduler, "total_steps")
    if times and has_end and type(scheduler).step.__qualname__ == "LRScheduler.step":
        scheduler.last_epoch += times - 1
        times = 1
    until = time.monotonic() + LONGEST_ADVANCE_S
    with suppress(Exception):
        for _ in range(times):
            if time.monotonic() > until:
                return
            scheduler.step()


def _reach(holds: Callable[[int], bool]) -> int | None:
    """For how many iterations a test holds; None where no end is in sight."""
    far = 1
    while holds(far):
        far *= 2
        if far > 1 << 40:
            return None
    low = far // 2
    while low + 1 < far:
        middle = (low + far) // 2
        low, far = (middle, far) if holds(middle) else (low, middle)
    return low + 1
