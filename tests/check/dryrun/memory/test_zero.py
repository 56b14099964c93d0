"""ZeRO, reckoned: the numbers of its paper, buffers, offloading, and any configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.memory.estimate import estimate
from epochzero.check.dryrun.memory.options import AllocatorOptions
from epochzero.check.dryrun.memory.replay import replay
from epochzero.check.dryrun.memory.trace import Alloc, Free, Trace
from epochzero.check.dryrun.memory.zero import Zero, partitioned
from epochzero.check.target.gpus import presets
from tests.check.dryrun.memory.traces import MIB, training

BILLION = 10**9
HALF = {"bf16": {"enabled": True}}
LAYERS = 15
MODEL_STATES = ("parameter", "gradient", "optimizer")


def with_zero(trace: Trace, stage: int, processes: int = 64, **zero: Any) -> Trace:
    given = {"stage": stage, "reduce_bucket_size": 0, **zero}
    return partitioned(trace, Zero.read({**HALF, "zero_optimization": given}), processes)


def most_of(trace: Trace, kinds: tuple[str, ...]) -> int:
    """The most bytes of these kinds at a time."""
    now = most = 0
    sizes: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Alloc) and trace.kind(event.storage) in kinds:
            sizes[event.storage] = event.size
            now += event.size
        elif isinstance(event, Free):
            now -= sizes.pop(event.storage, 0)
        most = max(most, now)
    return most


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_model_states_are_those_of_the_paper(stage: int, gigabytes: float) -> None:
    # Figure 1: 7.5 billion parameters on 64 GPUs, mixed precision, Adam.
    trace = training(batch=0, blocks=LAYERS, parameter=2 * 7_500_000_000 // LAYERS)
    found = most_of(with_zero(trace, stage), MODEL_STATES) / BILLION
    assert found == pytest.approx(gigabytes, abs=0.05)


def test_gradients_are_reduced_in_buffers_of_the_bucket() -> None:
    trace = training()
    one = with_zero(trace, 2, reduce_bucket_size=1e6)
    two = with_zero(trace, 2, reduce_bucket_size=1e6, overlap_comm=True)
    copied = with_zero(trace, 2, reduce_bucket_size=1e12, contiguous_gradients=False)
    assert most_of(one, ("communication",)) == 2 * 10**6
    assert most_of(two, ("communication",)) == 4 * 10**6
    assert most_of(copied, ("communication",)) == 4 * 8 * MIB


def test_the_buckets_of_what_stood_in_are_not_counted() -> None:
    trace = training()
    last = len(trace.kinds)
    bucket = Alloc(last, 8 * MIB, 0)
    parallel = replace(
        trace, events=(bucket, *trace.events), kinds={**trace.kinds, last: "communication"}
    )
    assert most_of(parallel, ("communication",)) == 8 * MIB
    assert most_of(with_zero(parallel, 2), ("communication",)) == 0


def test_what_is_offloaded_takes_none_of_the_gpu() -> None:
    trace = training()
    away = with_zero(trace, 2, offload_optimizer={"device": "cpu"})
    assert most_of(away, ("optimizer", "gradient")) == 0
    assert most_of(away, ("parameter",)) == 4 * 8 * MIB
    all_away = with_zero(
        trace, 3, offload_optimizer={"device": "nvme"}, offload_param={"device": "cpu"}
    )
    assert most_of(all_away, MODEL_STATES) == 0


def test_stage_three_gathers_what_is_used() -> None:
    trace = training()
    few = with_zero(trace, 3, stage3_max_live_parameters=0, stage3_prefetch_bucket_size=0)
    assert most_of(few, ("communication",)) == 8 * MIB
    assert most_of(with_zero(trace, 3), ("communication",)) == 4 * 8 * MIB
    small = with_zero(trace, 3, stage3_param_persistence_threshold=8 * MIB)
    assert most_of(small, ("parameter",)) == 4 * 8 * MIB


def test_the_range_reaches_from_what_is_surely_held_to_what_may_be() -> None:
    memory = estimate(with_zero(training(), 3), presets()["T4"])
    plain = estimate(training(), presets()["T4"])
    assert memory.allocated.low < 0.97 * memory.allocated.likely
    assert memory.allocated.likely < plain.allocated.likely
    assert any("ZeRO stage 3 over 64 GPUs" in text for text in memory.assumptions)


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.just("auto"),
    st.floats(),
    st.integers(),
    st.just({"device": "cpu"}),
)
_NAMES = st.sampled_from(
    ["stage", "overlap_comm", "contiguous_gradients", "reduce_bucket_size", "offload_param",
     "offload_optimizer", "stage3_max_live_parameters", "stage3_prefetch_bucket_size"]
)  # fmt: skip


@given(st.dictionaries(_NAMES, _VALUES) | _VALUES, st.integers(1, 64))
def test_any_configuration_is_read(zero: Any, processes: int) -> None:
    trace = partitioned(training(), Zero.read({"zero_optimization": zero}), processes)
    assert trace.least is not None
    options = AllocatorOptions()
    assert replay(trace.least, options, 0).allocated <= replay(trace, options, 0).allocated
