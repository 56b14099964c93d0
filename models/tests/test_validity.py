"""DISSECTOR's formulas, by hand-made cases and as the paper writes them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from epochzero_models.dissect.validity import profile_validity, snapshot_validity

PROBABILITIES = st.lists(st.floats(1e-6, 1), min_size=2, max_size=6)


def as_published(probabilities: list[float], label: int) -> float:
    """Both branches of the paper."""
    own, ordered = probabilities[label], sorted(probabilities)
    if own == ordered[-1]:
        return own / (own + ordered[-2])
    return 1 - ordered[-1] / (ordered[-1] + own)


@given(probabilities=PROBABILITIES, data=st.data())
def test_snapshot_validity_is_that_of_the_paper(
    probabilities: list[float], data: st.DataObject
) -> None:
    label = data.draw(st.integers(0, len(probabilities) - 1))
    logits = torch.tensor([probabilities], dtype=torch.float64).log()
    found = snapshot_validity(logits, torch.tensor([label]))
    assert found.item() == pytest.approx(as_published(probabilities, label))


def test_snapshot_validity_of_certain_layers_is_finite() -> None:
    logits = torch.tensor([[1000.0, -1000.0], [-1000.0, 1000.0]])
    assert snapshot_validity(logits, torch.tensor([0, 0])).tolist() == [1, 0]


def test_profile_validity_by_hand() -> None:
    snapshots = torch.tensor([[0.5, 0.7, 0.9]], dtype=torch.float64)
    linear = (1 * 0.5 + 2 * 0.7 + 3 * 0.9) / 6
    log = (math.log(2) * 0.7 + math.log(3) * 0.9) / (math.log(2) + math.log(3))
    exp = sum(math.e**x * s for x, s in zip((1, 2, 3), (0.5, 0.7, 0.9), strict=True))
    exp /= math.e + math.e**2 + math.e**3
    assert profile_validity(snapshots, "linear").item() == pytest.approx(linear)
    assert profile_validity(snapshots, "log").item() == pytest.approx(log)
    assert profile_validity(snapshots, "exp").item() == pytest.approx(exp)
