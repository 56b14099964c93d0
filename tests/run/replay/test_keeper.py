"""What is kept while a training goes on, without a job around it."""

from __future__ import annotations

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
    keeper._take()
    assert not keeper.events
    again = deliver(keeper, torch.full((4,), 2.0))
    assert again.data_ptr() == copy.data_ptr()
    assert again.tolist() == [2] * 4
    assert deliver(keeper, torch.ones(5)).tolist() == [1] * 5


def test_what_a_validation_in_inference_mode_delivers_is_kept(keeper: Keeper) -> None:
    with torch.inference_mode():
        deliver(keeper, torch.ones(4))
    keeper._take()
    assert deliver(keeper, torch.zeros(4)).tolist() == [0] * 4
    assert not keeper._course.troubles
