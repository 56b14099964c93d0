"""Accuracy, F1, kappa and intervals, beside scikit-learn and published values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero.reports.statistics import (
    accuracy,
    agreement,
    class_scores,
    confusion,
    kappa,
    macro_f1,
    wilson,
)

_WORDS = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.tuples(_WORDS, _WORDS), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore:A single label")
def test_equal_to_the_reference_implementation(pairs: list[tuple[str, str]]) -> None:
    from sklearn import metrics

    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    classes, matrix = confusion(true, said)
    assert (matrix == metrics.confusion_matrix(true, said, labels=list(classes))).all()
    assert accuracy(matrix) == pytest.approx(metrics.accuracy_score(true, said))
    f1 = metrics.f1_score(true, said, average="macro", zero_division=0)
    assert macro_f1(matrix) == pytest.approx(f1)
    if len(classes) > 1:
        assert kappa(matrix) == pytest.approx(metrics.cohen_kappa_score(true, said))
    precision, recall, f1s, _ = metrics.precision_recall_fscore_support(
        true, said, labels=list(classes), zero_division=0
    )
    for at, one in enumerate(class_scores(classes, matrix)):
        assert (one.precision or 0, one.recall or 0, one.f1) == pytest.approx(
            (precision[at], recall[at], f1s[at])
        )


def test_one_class_only_has_no_kappa() -> None:
    found = agreement(["a"] * 5, ["a"] * 5)
    assert found.kappa.value is None
    assert found.kappa.interval is None
    assert found.accuracy.value == 1.0


def test_no_cases_have_no_statistics() -> None:
    found = agreement([], [])
    assert (found.n, found.accuracy.value, found.macro_f1.value, found.kappa.value) == (
        0,
        *3 * (None,),
    )


@pytest.mark.parametrize(
    ("part", "whole", "interval"),
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0, 0.1611)),
     (1, 29, (0.0061, 0.1718))],
)  # fmt: skip
def test_the_interval_of_a_share_is_the_published_one(
    part: int, whole: int, interval: tuple[float, float]
) -> None:
    assert wilson(part, whole) == pytest.approx(interval, abs=5e-5)


def test_a_share_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


def test_the_bootstrap_covers_the_value_and_repeats_itself() -> None:
    draw = np.random.default_rng(3)
    true = draw.choice(["a", "b"], 400).tolist()
    said = [word if draw.random() < 0.8 else "a" for word in true]
    one, again = agreement(true, said, seed=5), agreement(true, said, seed=5)
    assert one.accuracy == again.accuracy
    assert one.accuracy.value is not None
    assert one.accuracy.interval is not None
    low, high = one.accuracy.interval
    # The bootstrap and the normal approximation of a binomial are close at n = 400.
    share = one.accuracy.value
    half = 1.96 * (share * (1 - share) / 400) ** 0.5
    assert (low, high) == pytest.approx((share - half, share + half), abs=0.01)


def test_whole_groups_are_drawn() -> None:
    # Ten groups, each right throughout or wrong throughout: far less certain than 1,000 cases.
    true = ["a"] * 1000
    said = [("a" if n // 100 < 6 else "b") for n in range(1000)]
    groups = [str(n // 100) for n in range(1000)]
    alone, grouped = agreement(true, said), agreement(true, said, groups)
    assert alone.accuracy.interval is not None
    assert grouped.accuracy.interval is not None
    width = [high - low for low, high in (alone.accuracy.interval, grouped.accuracy.interval)]
    assert width[1] > 5 * width[0]


def test_sequences_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        agreement(["a"], [])
    with pytest.raises(ValueError, match="group"):
        agreement(["a", "b"], ["a", "b"], ["x"])
