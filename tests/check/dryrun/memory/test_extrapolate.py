"""Memory that grows with the iterations of a loop, by the two that were run before others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.memory.extrapolate import extrapolated
from epochzero.check.dryrun.memory.trace import (
    Alloc,
    AllocationSite,
    Event,
    Free,
    Skip,
    Trace,
    trace_of,
)
from epochzero.errors import InputError
from tests.check.dryrun.memory.traces import MIB

SITES = (AllocationSite("evaluate.py", 7, "head"), AllocationSite("evaluate.py", 9, ""))
PREDICTIONS, FEATURES = 0, 1


def peak(trace: Trace) -> int:
    """The most bytes that are asked for at a time."""
    sizes: dict[int, int] = {}
    most = 0
    for event in trace.events:
        if isinstance(event, Alloc):
            sizes[event.storage] = event.size
        elif isinstance(event, Free):
            sizes.pop(event.storage)
        most = max(most, sum(sizes.values()))
    return most


def loop(*ends: Event, count: int = 97, sure: bool = True) -> Trace:
    """Three of a hundred iterations, of which each makes 4 MiB of predictions and 1 MiB of features."""
    events: list[Event] = []
    for number in range(3):
        if number == 2:
            at = len(events)
        events += [Alloc(2 * number, 4 * MIB, PREDICTIONS), Alloc(2 * number + 1, MIB, FEATURES)]
    skip = Skip(at, count, begun=(0, 2, 4), sure=sure, until=len(events))
    return Trace((*events, *ends), {}, SITES, skips=(skip,))


def test_what_a_list_keeps_is_there_for_each_iteration() -> None:
    found = extrapolated(loop(*map(Free, range(6))))
    assert peak(found) == 100 * 5 * MIB
    assert found.least is None
    assert found.assumed[0] == (
        "evaluate.py:7 retains memory in each iteration: 388 MiB in 97 skipped iterations"
    )


def test_what_the_next_iteration_replaces_is_there_once() -> None:
    trace = loop(*map(Free, (0, 1, 3, 5)))
    # The predictions of an iteration go when the next are made.
    events = [*trace.events[:3], Free(0), *trace.events[3:5], Free(2), *trace.events[5:6]]
    skip = replace(trace.skips[0], at=5, until=len(events))
    replaced = replace(trace, events=(*events, *map(Free, (4, 1, 3, 5))), skips=(skip,))
    assert peak(extrapolated(replaced)) == (100 + 4 + 3) * MIB


def test_a_queue_of_fixed_length_does_not_grow() -> None:
    # One iteration later than what is replaced at once.
    trace = loop()
    events = (*trace.events, Free(0), Free(1))
    skip = replace(trace.skips[0], until=len(events))
    queue = replace(trace, events=(*events, *map(Free, range(2, 6))), skips=(skip,))
    assert peak(extrapolated(queue)) == peak(queue)


def test_a_queue_that_was_full_before_does_not_grow() -> None:
    makes = [Alloc(number, MIB, FEATURES) for number in range(5)]
    events = (*makes[:3], Free(0), makes[3], Free(1), makes[4], Free(2), Free(3), Free(4))
    skip = Skip(6, 100, begun=(0, 1, 2, 3, 4), sure=True, until=8)
    assert peak(extrapolated(Trace(events, {}, SITES, skips=(skip,)))) == 3 * MIB


def test_what_only_the_first_iteration_makes_does_not_grow() -> None:
    events = (Alloc(0, 4 * MIB, PREDICTIONS), Alloc(1, MIB, FEATURES), Alloc(2, MIB, FEATURES))
    skip = Skip(3, 100, begun=(0, 2, 3), sure=True, until=3)
    assert peak(extrapolated(Trace(events, {}, SITES, skips=(skip,)))) == (4 + 102) * MIB


def test_what_the_first_iteration_made_once_on_a_line_is_not_what_the_next_keeps_there() -> None:
    # Examples are the scale of a gradient scaler, and gradients if the time limit ends the next iteration.
    events = (Alloc(0, 512, PREDICTIONS), Alloc(1, 4 * MIB, PREDICTIONS), Free(1), Alloc(2, 4 * MIB, PREDICTIONS))  # fmt: skip
    skip = Skip(4, 100, begun=(0, 2, 3), sure=True, until=None)
    assert peak(extrapolated(Trace(events, {}, SITES, skips=(skip,)))) < 5 * MIB


def test_what_is_cleared_now_and_then_has_grown_until_then() -> None:
    assert peak(extrapolated(replace(loop(*map(Free, range(6)))))) == 500 * MIB
    trace = loop(*map(Free, range(6)))
    cleared = replace(trace, skips=(replace(trace.skips[0], until=len(trace.events)),))
    assert peak(extrapolated(cleared)) == 500 * MIB


def test_what_is_not_sure_to_grow_makes_the_range_wider() -> None:
    trace = loop(*map(Free, range(6)), sure=False)
    found = extrapolated(trace)
    assert found.least is not None
    assert (peak(found.least), peak(found)) == (15 * MIB, 500 * MIB)


def test_loops_within_loops_grow_by_the_product() -> None:
    # Three of ten epochs with three of a hundred batches each.
    events: list[Event] = []
    skips: list[Skip] = []
    for epoch in range(3):
        if epoch == 2:
            skips.append(Skip(len(events), 7, begun=(0, 3, 6), sure=True, until=None))
        begun = 3 * epoch
        for batch in range(3):
            if batch == 2:
                skips.append(Skip(len(events), 97, (begun, begun + 1, begun + 2), True, None))
            events.append(Alloc(begun + batch, MIB, FEATURES))
    trace = Trace(tuple(events), {}, SITES, skips=tuple(skips))
    assert peak(extrapolated(trace)) == 1000 * MIB


@given(
    st.integers(0, 1 << 50),
    st.lists(st.integers(0, 9), min_size=3),
    st.none() | st.integers(-1, 20),
)
def test_any_skip_leaves_a_trace_that_replays(
    count: int, storages: list[int], until: int | None
) -> None:
    skip = {"at": 3, "count": count, "sure": True, "until": until, "begun": sorted(storages)}
    lines = [{"a": number, "n": 1, "w": 0} for number in range(6)] + [{"f": 2}, {"skip": skip}]
    found = extrapolated(trace_of(lines))
    assert peak(found) >= 6
    assert {e.storage for e in found.events if isinstance(e, Free)} <= {
        e.storage for e in found.events if isinstance(e, Alloc)
    }


@pytest.mark.parametrize(
    "wrong", [{"count": -1}, {"begun": [0, 1]}, {"begun": [3, 2, 1]}, {"at": -1}]
)
def test_what_cannot_be_left_out_is_no_trace(wrong: dict[str, object]) -> None:
    skip = {"at": 0, "count": 1, "begun": [0, 1, 2], "sure": True, "until": None}
    assert trace_of([{"skip": skip}]).skips
    with pytest.raises(InputError, match="left out"):
        trace_of([{"skip": skip | wrong}])
