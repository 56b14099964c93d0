"""What is kept while a training goes on, without a job around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from epochzero.run.replay.child import keeper as keepers  # noqa: E402
from epochzero.run.replay.child.course import Course  # noqa: E402
from epochzero.run.replay.child.keeper import Keeper  # noqa: E402


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """One that may spend as much time as it needs."""
    monkeypatch.setattr(keepers, "FREE_S", 1e9)
    return Keeper(Course(), lambda: None)


@pytest.fixture
def poor(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """One that may spend no time on batches."""
    monkeypatch.setattr(keepers, "FREE_S", -1.0)
    monkeypatch.setattr(keepers, "BATCHES", -1.0)
    return Keeper(Course(), lambda: None)


def deliver(keeper: Keeper, batch: Any) -> torch.Tensor:
    """The copy of a batch that a loader delivers."""
    keeper.delivers(0, None, lambda: batch)
    return list(keeper.tensors().values())[-1]


def test_batches_after_a_snapshot_are_copied_into_the_memory_of_those_before(
    keeper: Keeper,
) -> None:
    first = torch.ones(4)
    copy = deliver(keeper, first)
    first.zero_()
    assert copy.tolist() == [1] * 4
    keeper._take(False)
    assert not keeper.events()
    again = deliver(keeper, torch.full((4,), 2.0))
    assert again.data_ptr() == copy.data_ptr()
    assert again.tolist() == [2] * 4
    assert deliver(keeper, torch.ones(5)).tolist() == [1] * 5


def test_what_a_validation_in_inference_mode_delivers_is_kept(keeper: Keeper) -> None:
    with torch.inference_mode():
        deliver(keeper, torch.ones(4))
    keeper._take(False)
    assert deliver(keeper, torch.zeros(4)).tolist() == [0] * 4
    assert not keeper._course.troubles


def test_a_batch_that_can_be_sampled_again_is_kept_by_its_indices_where_a_copy_is_too_dear(
    poor: Keeper,
) -> None:
    poor.delivers(0, None, lambda: poor.chooses(0, lambda: [3, 5]) and torch.ones(4))
    assert (poor.complete, poor.tensors()) == (True, {})
    assert poor.events()[0]["indices"] == {"kind": "list", "items": [3, 5]}
    assert poor.events()[0]["batch"]["kind"] == "left_out"


def test_of_a_stream_nothing_is_kept_where_copies_are_too_dear(poor: Keeper) -> None:
    poor.delivers(0, None, lambda: torch.ones(4))
    assert (poor.complete, poor.events()) == (False, [])


def test_indices_take_no_more_room_than_they_may(
    poor: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keepers, "LEAST_ROOM", 200)
    for kept in (1, 2, 0):
        poor.delivers(0, None, lambda: poor.chooses(0, lambda: [3, 5]) and torch.ones(4))
        assert len(poor.events()) == kept


def between_snapshots(
    monkeypatch: pytest.MonkeyPatch,
    *,
    step_s: float,
    cost_s: float,
    steps: int,
    deliver: Callable[[Keeper], torch.Tensor],
) -> list[float]:
    """Seconds from one snapshot to the next by a clock that each step and each snapshot puts on."""
    now, taken = [0.0], list[float]()
    monkeypatch.setattr(keepers.time, "monotonic", lambda: now[0])
    course = Course()
    keeper = Keeper(course, lambda: None)
    model = torch.nn.Linear(2, 2)
    course.models.add(model)

    def states() -> dict[str, Any]:
        now[0] += cost_s
        taken.append(now[0])
        return {}

    monkeypatch.setattr(keepers, "random_states", states)
    for _ in range(steps):
        now[0] += step_s
        course.steps += 1
        keeper.delivers(0, SimpleNamespace(_num_yielded=1), partial(deliver, keeper))
    return [later - before for before, later in pairwise(taken)]


def test_snapshots_take_their_share_of_the_time_whatever_one_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deliver(keeper: Keeper) -> torch.Tensor:
        assert keeper.complete
        return torch.ones(4)

    between = between_snapshots(monkeypatch, step_s=1.0, cost_s=3.0, steps=1000, deliver=deliver)
    assert len(between) == 3
    assert min(between) >= 3.0 / keepers.SNAPSHOTS


@pytest.mark.parametrize(("rows", "indices", "least_s"), [(4, [0], 0.5), (100_000, None, 0.1)])
def test_short_steps_share_a_snapshot_unless_their_batches_find_no_room(
    rows: int, indices: list[int] | None, least_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keepers, "FREE_S", 1e9)

    def deliver(keeper: Keeper) -> torch.Tensor:
        if indices is not None:
            keeper.chooses(0, lambda: indices)
        return torch.ones(rows)

    between = between_snapshots(monkeypatch, step_s=0.005, cost_s=0.001, steps=600, deliver=deliver)
    assert least_s <= min(between) < least_s + 0.02
