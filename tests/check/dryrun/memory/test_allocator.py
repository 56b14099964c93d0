"""The model of torch's caching allocator: what holds for every sequence, and known cases."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.memory.allocator import (
    LARGE_SEGMENT,
    SMALL_SEGMENT,
    CachingAllocator,
    OutOfMemoryError,
)
from epochzero.check.dryrun.memory.options import AllocatorOptions, cublas_workspace_bytes

MIB = 1 << 20

OPTIONS = st.builds(
    AllocatorOptions,
    expandable_segments=st.booleans(),
    max_split_size=st.sampled_from([None, 20 * MIB, 64 * MIB]),
    roundup_power2_divisions=st.sampled_from([(), ((0, 4),), ((4, 2), (0, 8))]),
)
SIZES = st.one_of(st.integers(1, 2 * MIB), st.integers(1, 64 * MIB))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), SIZES, st.integers(0, 1)),
        st.tuples(st.just("free"), st.integers(0, 200), st.just(0)),
        st.tuples(st.just("empty"), st.just(0), st.just(0)),
    ),
    max_size=80,
)


def _run(allocator: CachingAllocator, steps: list[tuple[str, int, int]]) -> list[tuple[int, int]]:
    """The bytes allocated and reserved after each step; checks what must hold on the way."""
    told, requested = [], {}
    for number, (what, value, stream) in enumerate(steps):
        if what == "malloc":
            try:
                allocator.malloc(number, value, stream)
                requested[number] = value
            except OutOfMemoryError:
                pass
        elif what == "free":
            allocator.free(value)
            requested.pop(value, None)
        else:
            allocator.empty_cache()
        used = allocator.used()
        assert all(end <= start for (_, end), (start, _) in pairwise(used))
        assert sum(end - start for start, end in used) == allocator.allocated
        assert sum(requested.values()) <= allocator.allocated <= allocator.reserved
        assert allocator.capacity is None or allocator.reserved <= allocator.capacity
        told.append((allocator.allocated, allocator.reserved))
    return told


@given(OPTIONS, st.sampled_from([None, 100 * MIB]), STEPS)
def test_blocks_never_overlap_and_are_within_what_is_reserved(
    options: AllocatorOptions, capacity: int | None, steps: list[tuple[str, int, int]]
) -> None:
    told = _run(CachingAllocator(options, capacity), steps)
    assert told == _run(CachingAllocator(options, capacity), steps)


@given(OPTIONS, STEPS)
def test_when_all_is_freed_all_can_be_given_back(
    options: AllocatorOptions, steps: list[tuple[str, int, int]]
) -> None:
    allocator = CachingAllocator(options)
    _run(allocator, steps)
    for number in range(len(steps)):
        allocator.free(number)
    assert allocator.allocated == 0
    allocator.empty_cache()
    assert allocator.reserved == 0


@pytest.mark.parametrize(
    ("size", "reserved"),
    [
        (1, SMALL_SEGMENT),
        (MIB, SMALL_SEGMENT),
        (MIB + 1, LARGE_SEGMENT),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),
    ],
)
def test_segments_are_of_the_sizes_that_torch_asks_for(size: int, reserved: int) -> None:
    allocator = CachingAllocator()
    allocator.malloc(0, size)
    assert allocator.reserved == reserved


def test_the_rest_of_a_block_is_split_off_only_where_it_is_large_enough() -> None:
    allocator = CachingAllocator()
    allocator.malloc(0, 19 * MIB + 512 * 1024)  # of a segment of 20 MiB
    assert allocator.allocated == 20 * MIB
    allocator.free(0)
    allocator.malloc(1, 15 * MIB)
    assert (allocator.allocated, allocator.reserved) == (15 * MIB, 20 * MIB)


def test_a_stream_does_not_take_the_blocks_of_another() -> None:
    allocator = CachingAllocator()
    allocator.malloc(0, 30 * MIB)
    allocator.free(0)
    allocator.malloc(1, 30 * MIB, stream=1)
    assert allocator.reserved == 60 * MIB


def test_expandable_segments_have_no_gap_that_is_too_small() -> None:
    usual = CachingAllocator()
    growing = CachingAllocator(AllocatorOptions(expandable_segments=True))
    for allocator in (usual, growing):
        for number, size in enumerate((40 * MIB, 80 * MIB, 120 * MIB)):
            allocator.malloc(number, size)
            allocator.free(number)
    assert (usual.reserved, growing.reserved) == (240 * MIB, 120 * MIB)


def test_what_is_kept_is_given_back_where_there_is_no_room() -> None:
    allocator = CachingAllocator(capacity=100 * MIB)
    allocator.malloc(0, 60 * MIB)
    allocator.free(0)
    allocator.malloc(1, 80 * MIB)
    assert (allocator.reserved, allocator.retries) == (80 * MIB, 1)
    with pytest.raises(OutOfMemoryError) as failed:
        allocator.malloc(2, 40 * MIB)
    assert failed.value.size == 40 * MIB


def test_large_blocks_are_kept_whole_where_max_split_size_says_so() -> None:
    allocator = CachingAllocator(AllocatorOptions(max_split_size=64 * MIB))
    allocator.malloc(0, 100 * MIB)
    allocator.free(0)
    allocator.malloc(1, 30 * MIB)
    assert allocator.reserved == 130 * MIB
    allocator.malloc(2, 90 * MIB)
    assert allocator.reserved == 130 * MIB


def test_sizes_are_rounded_to_the_division_of_a_power_of_two() -> None:
    # The example of torch's documentation: 1200 with 4 divisions is 1280.
    allocator = CachingAllocator(AllocatorOptions(roundup_power2_divisions=((0, 4),)))
    assert allocator.rounded(1200 << 10) == 1280 << 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", AllocatorOptions()),
        ("expandable_segments:True", AllocatorOptions(expandable_segments=True)),
        (
            "max_split_size_mb:128,garbage_collection_threshold:0.8",
            AllocatorOptions(
                max_split_size=128 * MIB, not_modelled=("garbage_collection_threshold",)
            ),
        ),
        (
            "roundup_power2_divisions:[256:1,512:2,>:8]",
            AllocatorOptions(roundup_power2_divisions=((256, 1), (512, 2), (0, 8))),
        ),
    ],
)
def test_options_are_read_as_torch_reads_them(text: str, expected: AllocatorOptions) -> None:
    assert AllocatorOptions.read({"PYTORCH_CUDA_ALLOC_CONF": text}) == expected
    assert AllocatorOptions.read({"PYTORCH_ALLOC_CONF": text}) == expected


@given(st.text(alphabet="expandable_segments:True,[]>0123456789", max_size=60))
def test_any_text_is_read(text: str) -> None:
    AllocatorOptions.read({"PYTORCH_ALLOC_CONF": text})


def test_the_workspace_of_cublas_is_as_its_variable_says() -> None:
    assert cublas_workspace_bytes((8, 0), {}) == 8519680
    assert cublas_workspace_bytes((9, 0), {}) == 32 * MIB
    assert cublas_workspace_bytes((8, 0), {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) == 32 * MIB
    assert cublas_workspace_bytes((8, 0), {"CUBLAS_WORKSPACE_CONFIG": "garbage"}) == 8519680
