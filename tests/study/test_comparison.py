"""Tests, effect sizes and intervals beside values that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero.study.comparison import (
    chi_square,
    cliffs_delta,
    cohens_d,
    compare,
    mean,
    word_of_size,
)

# Student's sleep data (R's `sleep`): t.test(..., var.equal = TRUE) gives t = -1.8608, p = 0.07919.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
SKEWED = [0.0] * 15 + [1.0, 0.5, 0.3, 1.0, 1.0]


def test_two_normal_groups_are_tested_as_r_does() -> None:
    found = compare(DRUG_1, DRUG_2)
    assert found.test == "t-test"
    assert found.p == pytest.approx(0.07919, abs=5e-6)
    assert found.mean.value == pytest.approx(-1.58)
    assert found.effect == "Cohen's d"
    assert found.size == pytest.approx(-0.8322, abs=5e-5)
    assert found.word == "large"


def test_other_groups_are_tested_by_ranks() -> None:
    from scipy import (
        stats,
    )  # takes a second, and every process of pytest-xdist imports every test file

    found = compare(SKEWED, DRUG_2)
    assert found.test == "Mann-Whitney U"
    assert found.p == stats.mannwhitneyu(SKEWED, DRUG_2).pvalue
    assert found.size == cliffs_delta(SKEWED, DRUG_2)


def test_cliffs_delta_counts_pairs() -> None:
    pairs = [np.sign(a - b) for a in DRUG_1 for b in DRUG_2]
    assert cliffs_delta(DRUG_1, DRUG_2) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(
    ("effect", "size", "word"),
    [
        ("Cohen's d", 0.19, "negligible"),
        ("Cohen's d", -0.2, "small"),
        ("Cohen's d", 0.5, "medium"),
        ("Cliff's delta", 0.146, "negligible"),
        ("Cliff's delta", -0.33, "medium"),
        ("Cliff's delta", 0.474, "large"),
    ],
)
def test_an_effect_has_a_word(effect: str, size: float, word: str) -> None:
    assert word_of_size(effect, size) == word


def test_chi_square_is_the_published_one() -> None:
    """58, not 41, of 385 give the p of Jahan et al."""
    found = chi_square([[154, 231], [58, 327]])
    assert found is not None
    assert found.p == pytest.approx(1.795e-14, rel=1e-3)
    assert chi_square([[154, 0], [58, 0]]) is None
    assert chi_square([[1, 2]]) is None


def test_an_interval_is_that_of_scipy() -> None:
    from scipy import (
        stats,
    )  # takes a second, and every process of pytest-xdist imports every test file

    low, high = mean(DRUG_2, seed=3).interval or (0, 0)
    theirs = stats.bootstrap((DRUG_2,), np.mean, method="percentile", rng=4).confidence_interval
    assert low == pytest.approx(theirs.low, abs=0.2)
    assert high == pytest.approx(theirs.high, abs=0.2)
    assert mean(DRUG_2, seed=3) == mean(DRUG_2, seed=3)


def test_whole_groups_are_drawn() -> None:
    alone = mean([0.0, 1.0] * 50).interval
    grouped = mean([0.0, 1.0] * 50, ["a", "b"] * 50).interval
    assert grouped == (0.0, 1.0)
    assert alone is not None
    assert alone[1] - alone[0] < 0.3
    assert mean([1.0, 2.0], ["a", "a"]).interval is None


@pytest.mark.parametrize(("first", "second"), [([], [1.0]), ([1.0, 2.0], [3.0]), ([1.0] * 5, [1.0] * 5)])  # fmt: skip
def test_what_cannot_be_tested_is_not(first: list[float], second: list[float]) -> None:
    found = compare(first, second)
    assert (found.test, found.p, found.size) == ("", None, None)


VALUES = st.lists(st.floats(0, 1), max_size=12)


@settings(max_examples=40, deadline=None)
@given(VALUES, VALUES)
def test_no_number_is_undefined(first: list[float], second: list[float]) -> None:
    found = compare(first, second)
    numbers = [found.mean.value, found.p, found.size, *(found.mean.interval or ())]
    assert all(number is None or math.isfinite(number) for number in numbers)
    d = cohens_d(first, second) if first and second else None
    assert d is None or math.isfinite(d)
