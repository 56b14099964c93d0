"""What the strength of a root's signs is worth."""

from __future__ import annotations

import pytest

from epochzero import taxonomy
from epochzero.run.watch.calibration import PRIOR, Calibration, calibration

COUNTED = Calibration.of(
    {"curve": [[0.5, 0.25], [0.7, 0.75]], "words": {"loss_wrong": [4, 4], "data_leaked": [0, 4]}}
)


@pytest.mark.parametrize(("strength", "share"), [(0.4, 0.25), (0.69, 0.25), (0.7, 0.75), (1, 0.75)])
def test_a_kind_that_was_never_a_root_is_told_as_all_are(strength: float, share: float) -> None:
    assert COUNTED.confidence("not_shuffled", strength) == share


@pytest.mark.parametrize(("word", "right"), [("loss_wrong", 4), ("data_leaked", 0)])
def test_roots_of_a_kind_move_it(word: str, right: int) -> None:
    assert COUNTED.confidence(word, 0.8) == (PRIOR * 0.75 + right) / (PRIOR + 4)


def test_the_lab_has_counted() -> None:
    counted = calibration()
    assert counted.words.keys() <= taxonomy.faults().keys()
    assert all(0 <= right <= count for right, count in counted.words.values())
    strengths, shares = zip(*counted.curve, strict=True)
    assert list(strengths) == sorted(strengths)
    assert list(shares) == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)
