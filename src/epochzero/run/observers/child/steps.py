"""In the job's process: how long this rank's steps take, and how much of that is its own doing.

In a synchronous training all ranks take as long as the slowest one: the others wait for it within the backward
pass, or between that and the end of the optimizer's step. A rank's own time is what is left: data, forward pass,
logging. On a GPU that time is measured by events on its stream, since the processor runs ahead.

The numbers are in a mapped file of the attempt, so that a step needs no system call. Of short steps only some are timed: timing
one costs about 50 µs, which may be half a percent.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic, perf_counter
from typing import Any

FOLDER_VARIABLE = "EPOCHZERO_STEPS_FOLDER"
LAYOUT = struct.Struct("=6q5d")
"""rank, world size, pid, GPU index or -1, steps, steps that are timed; total, own and data seconds of these,
time of the last step, seconds that were spent on this."""
_NO_RANK = -1
_COST_S = 50e-6
_SHARE = 0.005
_MOST_UNTIMED = 63
_MOST_PENDING = 64
"""Steps whose GPU events are not complete yet; more than a training's processor runs ahead."""


class StepTimer:
    """Times the steps of one rank; each method is called by a hook in the training's thread."""

    def __init__(self, folder: str, torch: Any) -> None:
        """Nothing is timed until a second step."""
        self._folder = folder
        self._torch = torch
        self._file: mmap.mmap | None = None
        self._pid = 0
        self._rank, self._world, self._gpu = _NO_RANK, 0, -1
        self.is_timing = True
        self._untimed = 0
        self._last = 0.0
        self._last_steps = 0
        self._steps = self._timed = 0
        self._total = self._own = self._data = self._spent = 0.0
        self._depth = 0
        self._segments: list[tuple[Any, Any]] = []
        self._mark: Any = None
        self._began: Any = None
        self._has_backward = False
        self._of_step = 0.0
        self._data_of_step = 0.0
        self._pending: deque[tuple[Any, Any, list[tuple[Any, Any]], float]] = deque()

    def data_loaded(self, seconds: float) -> None:
        """The loader has given a batch after so long."""
        self._data_of_step += seconds

    def backward_begins(self) -> None:
        """A backward pass begins; those of recomputed parts lie within another."""
        self._has_backward = True
        if not self.is_timing:
            return
        self._depth += 1
        if self._depth == 1 and self._mark is not None:
            self._segments.append((self._mark, self._now()))

    def backward_ended(self) -> None:
        """A backward pass has ended."""
        if not self.is_timing:
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._mark = self._now() if self._began is not None else None

    def stepped(self) -> None:
        """An optimizer has stepped. One more without a backward pass since the last belongs to that step."""
        is_new = self._has_backward
        self._has_backward = False
        self._steps += is_new
        if not self.is_timing:
            self._untimed -= is_new
            if self._untimed > 0:
                return
        entered = perf_counter()
        now = self._now()
        if is_new:
            if self.is_timing and self._began is not None:
                self._add((self._began, now, self._segments, self._data_of_step))
                self._untimed = self._pause(entered)
            self._segments, self._data_of_step, self._depth = [], 0.0, 0
            self.is_timing = self._untimed <= 0
            self._began = now if self.is_timing else None
        self._mark = now if self.is_timing else None
        self._spent += perf_counter() - entered
        self._write()

    def _pause(self, now: float) -> int:
        """How many steps are not timed before the next one, so that timing costs little."""
        each = (now - self._last) / max(1, self._steps - self._last_steps)
        self._last, self._last_steps = now, self._steps
        return min(_MOST_UNTIMED, int(_COST_S / (_SHARE * max(each, 1e-9))))

    def _now(self) -> Any:
        """A time of the processor, or an event on the GPU's stream."""
        cuda = self._torch.cuda
        if not cuda.is_initialized():
            return perf_counter()
        if cuda.is_current_stream_capturing():
            return None
        event = cuda.Event(enable_timing=True)
        event.record()
        return event

    def _add(self, step: tuple[Any, Any, list[tuple[Any, Any]], float]) -> None:
        self._pending.append(step)
        if len(self._pending) > _MOST_PENDING:
            self._pending.popleft()
        while self._pending:
            began, ended, segments, data = self._pending[0]
            times = [began, ended, *(time for segment in segments for time in segment)]
            kinds = {type(time) for time in times}
            if (
                len(kinds) > 1 or type(None) in kinds
            ):  # The GPU came into use, or a graph is captured.
                self._pending.popleft()
                continue
            if not isinstance(ended, float) and not ended.query():
                return
            self._pending.popleft()
            self._timed += 1
            self._total += _between(began, ended)
            self._own += sum(_between(*segment) for segment in segments)
            self._data += data

    def _write(self) -> None:
        # A process that a rank has forked is no rank.
        if (self._rank == _NO_RANK or self._pid != os.getpid()) and not self._find_rank():
            return
        if self._file is not None:
            LAYOUT.pack_into(
                self._file, 0, self._rank, self._world, self._pid, self._gpu, self._steps, self._timed,
                self._total, self._own, self._data, monotonic(), self._spent,
            )  # fmt: skip

    def _find_rank(self) -> bool:
        """Whether this process is a rank of several; then its file is opened."""
        distributed = self._torch.distributed
        if not distributed.is_available() or not distributed.is_initialized():
            return False
        self._rank, self._world = distributed.get_rank(), distributed.get_world_size()
        self._pid = os.getpid()
        if self._torch.cuda.is_initialized():
            self._gpu = self._torch.cuda.current_device()
        # A full disk costs the numbers, not the job.
        try:
            with open(os.path.join(self._folder, f"{self._pid}.steps"), "w+b") as file:
                file.write(bytes(LAYOUT.size))
                file.flush()
                self._file = mmap.mmap(file.fileno(), LAYOUT.size)
        except (OSError, ValueError):
            self._file = None
        return True


def begin_torch(torch: Any, environment: Mapping[str, str]) -> None:
    """Puts the hooks in place; of a version of torch without them nothing is timed."""
    folder = environment.get(FOLDER_VARIABLE)
    if not folder:
        return
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils.data import dataloader

    timer = StepTimer(folder, torch)
    is_compiling = torch.compiler.is_compiling
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def timed_backward(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return backward(*args, **kwargs)
        timer.backward_begins()
        if not timer.is_timing:
            return backward(*args, **kwargs)
        try:
            return backward(*args, **kwargs)
        finally:
            timer.backward_ended()

    torch.autograd.backward = timed_backward
    loader = dataloader._BaseDataLoaderIter
    setattr(loader, "__next__", _timed_next(loader.__next__, timer))  # noqa: B010 - typed otherwise
    register_optimizer_step_post_hook(lambda *_: timer.stepped())


def _timed_next(following: Callable[[Any], Any], timer: StepTimer) -> Callable[[Any], Any]:
    @functools.wraps(following)
    def timed(self: Any) -> Any:
        if not timer.is_timing:
            return following(self)
        began = perf_counter()
        try:
            return following(self)
        finally:
            timer.data_loaded(perf_counter() - began)

    return timed


def _between(began: Any, ended: Any) -> float:
    """Seconds between two times, or two events."""
    if isinstance(began, float):
        return float(ended - began)
    return float(began.elapsed_time(ended)) / 1000
