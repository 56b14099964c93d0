"""Which batch of a data loader is drawn second."""

from __future__ import annotations

from typing import Any

import pytest

from epochzero.check.dryrun.child.largest import largest_second


class Batches:
    """An iterator of a data loader, as far as it is known."""

    def __init__(self) -> None:
        self._sampler_iter: Any = iter([[0, 1], [2, 3], [4, 5], [6, 7]])


class Texts:
    """Texts of one length, except one that is longer or cannot be read."""

    def __init__(self, other: str) -> None:
        self.other = other

    def __getitem__(self, index: int) -> str:
        if index == 5:
            return self.other or [][0]
        return "text"


@pytest.mark.parametrize(
    ("other", "order"),
    [
        ("a longer text", [[0, 1], [4, 5], [2, 3], [6, 7]]),
        ("", [[0, 1], [4, 5], [2, 3], [6, 7]]),
        ("same", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ],
)
def test_a_batch_that_is_longest_or_cannot_be_read_is_drawn_second(
    other: str, order: list[list[int]]
) -> None:
    batches = Batches()
    found = largest_second(batches, Texts(other))
    assert list(batches._sampler_iter) == order
    assert (found is None) == (other == "same")
