"""Methods by their names."""

from __future__ import annotations

from typing import Any

import pytest

from epochzero.errors import InputError
from epochzero.run.watch.history import read_records
from epochzero.run.watch.model import WatchResult
from epochzero.study.training_faults import NAMES, by_name
from epochzero.study.training_faults.training_view import epochs


@pytest.mark.parametrize("name", NAMES)
def test_each_method_says_nothing_of_nothing(name: str) -> None:
    assert by_name(name)(read_records([])) == WatchResult(0)


def test_an_unknown_method_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match="deeplocalize"):
        by_name("deepfix")


def test_epochs_are_where_the_loader_is_gone_through_anew() -> None:
    told: list[dict[str, Any]] = []
    for epoch in range(3):
        told.append({"kind": "epoch", "loader": 0, "iteration": 5 * epoch})
        for number in range(5 * epoch, 5 * epoch + 5):
            told.append({"kind": "iteration", "iteration": number, "loader": 0})
        told.append({"kind": "epoch", "loader": 1, "iteration": 5 * epoch + 5})
        for half in (2, 5):
            told.append({"kind": "evaluation", "iteration": 5 * epoch + half, "loss": half})
    found = epochs(read_records(told))
    assert [[one.number for one in epoch.looks] for epoch in found] == [
        [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14],
    ]  # fmt: skip
    assert [one.evaluation.loss for one in found if one.evaluation] == [5, 5, 5]
