"""Ranks that are slower than the others: what their steps tell, in numbers and in a real job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.injected.companions import with_companions
from epochzero.run.observers import slow_ranks
from epochzero.run.observers.child import steps as child_steps
from epochzero.run.observers.child.steps import StepTimer
from epochzero.run.observers.gpus import GpuReader
from epochzero.run.observers.slow_ranks import (
    STEPS_COMPANION,
    RankSteps,
    SlowRankWatcher,
    paces,
    read_steps,
    with_steps,
)
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import SLOW_RANK_EVENT, SLOW_RANKS_EVENT, GpuSample, JobEvent
from tests.ports import unused_port
from tests.run.trees import job, until
from tests.torch_jobs import light_torch

Steps = Mapping[int, RankSteps]


def made(count: int, *ranks: tuple[float, float], gpu: int | None = None) -> Steps:
    """Ranks that have made so many steps, each of so many seconds of its own, of which so many for data."""
    slowest = max(own for own, _ in ranks)
    return {
        rank: RankSteps(
            rank, 0, gpu, count, count, count * (slowest + 0.1), count * own, count * data
        )
        for rank, (own, data) in enumerate(ranks)
    }


def test_a_rank_is_as_slow_as_the_job_would_be_if_all_were_like_it() -> None:
    found = paces(made(0, *[(0, 0)] * 4), made(10, (0.1, 0), (0.1, 0), (0.3, 0), (0.1, 0)))
    assert [pace.seconds for pace in found] == pytest.approx([0.2, 0.2, 0.4, 0.2])
    assert [pace.ratio for pace in found] == pytest.approx([1, 1, 2, 1])


def test_of_two_ranks_the_other_is_the_measure() -> None:
    found = paces(made(0, (0, 0), (0, 0)), made(10, (0.1, 0), (0.4, 0)))
    assert [pace.ratio for pace in found] == pytest.approx([0.4, 2.5])


def test_a_rank_that_computes_longer_in_its_backward_pass_is_slower() -> None:
    before, after = made(0, (0, 0), (0, 0)), made(10, (0.1, 0), (0.1, 0))
    after = {rank: replace(steps, total=3.0, computed=1.0 + rank) for rank, steps in after.items()}
    assert [pace.ratio for pace in paces(before, after)] == pytest.approx([2 / 3, 1.5])
    on_gpus = {rank: replace(steps, gpu=rank) for rank, steps in after.items()}
    assert [pace.ratio for pace in paces(before, on_gpus)] == pytest.approx([1, 1])


def test_ranks_that_have_hardly_stepped_are_not_compared() -> None:
    assert paces(made(0, (0, 0), (0, 0)), made(2, (0.1, 0), (0.4, 0))) == ()


@pytest.mark.parametrize(
    ("computed", "text"),
    [(0.0, "it waits 250 ms per step for a processor that other processes use"),
     (0.2, "apart from waiting for other ranks, it takes 300 ms per step, the others 100 ms")],
)  # fmt: skip
def test_a_rank_waits_for_a_processor_unless_it_computes_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, computed: float, text: str
) -> None:
    windows = [
        {
            n: replace(
                rank,
                waited=rank.steps * (0.25 if n == 2 else 0.01),
                computed=rank.steps * (0.05 + (computed if n == 2 else 0)),
            )
            for n, rank in window.items()
        }
        for window in growing((0.1, 0), (0.1, 0), (0.3, 0))
    ]
    slow, _ = events_of(windows, monkeypatch, tmp_path)
    assert slow.text.endswith(text)


class Ticking(Clock):
    """A clock of the test."""

    seconds = 0.0

    def now(self) -> tuple[float, float]:
        return self.seconds, self.seconds


def events_of(
    windows: Sequence[Steps], monkeypatch: pytest.MonkeyPatch, folder: Path, gpus: int = 0
) -> list[JobEvent]:
    """What a watcher reports of these states, ten seconds apart."""
    clock, states = Ticking(), iter(windows)
    monkeypatch.setattr(slow_ranks, "read_steps", lambda _: next(states))
    monkeypatch.setattr(SlowRankWatcher, "_place", lambda *_: "")
    watcher = SlowRankWatcher({}, gpus=gpus)
    watcher.started(1, folder, clock)
    found = []
    for _ in windows:
        clock.seconds += 10
        found += list(watcher.tick())
    return [event for event in [*found, *watcher.ended()] if isinstance(event, JobEvent)]


def growing(*ranks: tuple[float, float], fast_again: bool = False, **given: int) -> list[Steps]:
    windows = [made(count, *ranks, **given) for count in range(0, 500, 100)]
    if fast_again:
        last = windows[-1]
        windows.append(
            {
                n: replace(r, steps=500, timed=500, total=r.total + 20, own=r.own + 10)
                for n, r in last.items()
            }
        )
    return windows


def test_a_slow_rank_is_reported_with_its_data_and_cost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    windows = growing((0.1, 0.02), (0.1, 0.02), (0.3, 0.22), (0.1, 0.02))
    slow, end = events_of(windows, monkeypatch, tmp_path, gpus=360)
    assert (slow.what, slow.rank, end.what) == (SLOW_RANK_EVENT, 2, SLOW_RANKS_EVENT)
    assert slow.text == (
        "rank 2 has been 2 times slower than the median since about step 1: loading its data takes 220 ms per step, "
        "20 ms on the others"
    )
    assert end.text.endswith("; about 2 GPU hours were lost")


def test_a_rank_that_is_fast_again_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = events_of(growing((0.1, 0), (0.3, 0), fast_again=True), monkeypatch, tmp_path)
    assert [event.text.partition(":")[0] for event in events][:2] == [
        "rank 1 has been 2 times slower than the median since about step 1",
        "rank 1 is as fast as the others again since step 401",
    ]


def test_one_slow_window_is_no_slow_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    windows = growing((0.1, 0), (0.3, 0), fast_again=True)[-3:]
    assert events_of(windows, monkeypatch, tmp_path) == []


@pytest.mark.parametrize(
    ("clocks", "throttled", "text"),
    [
        ((1980.0, 1980.0, 1095.0), "heat", "its GPU is throttled (heat; 1095 MHz, the others 1980 MHz)"),
        ((1980.0, 1980.0, 1410.0), "", "its GPU's clock is 1410 MHz, that of the others 1980 MHz"),
        ((1980.0, 1980.0, 1980.0), "", "apart from waiting for other ranks, it takes 300 ms per step, the others 100 "
            "ms"),
    ],
)  # fmt: skip
def test_a_slow_gpu_is_the_cause(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    clocks: tuple[float, ...],
    throttled: str,
    text: str,
) -> None:
    samples = tuple(
        GpuSample(n, 99.0, 1, 2, clock_mhz=clock, throttled=throttled if n == 2 else "")
        for n, clock in enumerate(clocks)
    )
    monkeypatch.setattr(GpuReader, "read", lambda _: samples)
    windows = [
        {n: replace(rank, gpu=n) for n, rank in window.items()}
        for window in growing((0.1, 0), (0.1, 0), (0.3, 0))
    ]
    slow, _ = events_of(windows, monkeypatch, tmp_path)
    assert slow.text.endswith(text)


LAUNCHER = """
import os, subprocess, sys
os.environ["WORLD_SIZE"] = "2"
ranks = []
for rank in "01":
    os.environ["RANK"] = rank
    ranks.append(subprocess.Popen([sys.executable, "-c", {script!r}]))
for rank in ranks:
    rank.wait()
"""
TRAINING = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.randn(100000, 4), batch_size=4)
for batch in loader:
    loss = model(batch).sum()
    if rank == 1:
        time.sleep(0.05)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.needs_torch
def test_a_real_job_reports_the_slow_one_of_its_ranks(tmp_path: Path) -> None:
    environment = with_companions(with_steps({}, tmp_path), [STEPS_COMPANION], tmp_path)
    variables = {**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(unused_port())}
    watcher = SlowRankWatcher({}, window=0.5)
    found: list[JobEvent] = []
    with job(LAUNCHER.format(script=light_torch(TRAINING)), **variables) as child:
        watcher.started(child.pid, tmp_path, Clock())

        def reported() -> bool:
            found.extend(event for event in watcher.tick() if isinstance(event, JobEvent))
            return bool(found)

        until(reported)
        steps = read_steps(tmp_path / "steps")
    assert found[0].rank == 1
    assert steps[1].own / steps[1].timed >= 0.05
    assert steps[0].own / steps[0].timed < steps[1].own / steps[1].timed
    assert 0 < steps[0].data < steps[0].own


class NoGpu:
    """A torch without a GPU and without ranks."""

    class cuda:  # noqa: N801 - as torch names it
        is_initialized = staticmethod(lambda: False)

    class distributed:  # noqa: N801
        is_available = staticmethod(lambda: False)


def test_two_optimizers_after_one_backward_pass_are_one_step(tmp_path: Path) -> None:
    timer = StepTimer(str(tmp_path), NoGpu)
    for _ in range(3):
        timer.backward_begins()
        timer.backward_begins()
        timer.backward_ended()
        timer.backward_ended()
        timer.stepped()
        timer.stepped()
    assert timer._steps == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("step", "timed"), [(0.02, 199), (0.001, 20), (0.00001, 4)])
def test_of_short_steps_only_some_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float, timed: int
) -> None:
    clock = [0.0]
    monkeypatch.setattr(child_steps, "perf_counter", lambda: clock[0])
    timer = StepTimer(str(tmp_path), NoGpu)
    for _ in range(200):
        clock[0] += step / 4
        if timer.is_timing:
            timer.data_loaded(step / 4)
        clock[0] += step / 4
        timer.backward_begins()
        clock[0] += step / 2
        timer.backward_ended()
        timer.stepped()
    assert (timer._steps, timer._timed) == (200, timed)
    assert timer._total == pytest.approx(timed * step)
    assert timer._own == pytest.approx(timed * step / 2)
    assert timer._data == pytest.approx(timed * step / 4)


def test_a_job_without_torch_is_the_same_with_the_companions(
    tmp_path: Path, run: Callable[..., object]
) -> None:
    script = "import os, sys; print(os.environ.get('PYTHONPATH'), 'torch' in sys.modules, end='')"
    done = run("--", sys.executable, "-c", script)
    assert done.stdout == b"None False"  # type: ignore[attr-defined]
