"""Scores beside scikit-learn's, thresholds by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors as Neighbors
from sklearn.preprocessing import normalize

from epochzero.errors import InputError
from epochzero_models import Examples
from epochzero_models.dissect import detectors
from epochzero_models.dissect.detectors import (
    FeatureDensity,
    Mahalanobis,
    NearestNeighbors,
    RelativeMahalanobis,
    Validity,
    VirtualLogit,
    fit_detectors,
)
from epochzero_models.dissect.separation import auc, auc_gain, choose_threshold, cut_at, roc
from epochzero_models.dissect.submodels import train_submodel

SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
RIGHT = np.array([False, False, True, False, True, True])


@settings(max_examples=20)  # each with a thousand draws
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_the_area_is_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in pairs], np.float64)
    right = np.array([flag for _, flag in pairs])
    found = auc(scores, right, 0).value
    if right.all() or not right.any():
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(right, scores))
        across, up = roc(scores, right)
        assert np.trapezoid(up, across) == pytest.approx(found)


def test_an_area_has_its_interval_and_differences_are_paired() -> None:
    draw = np.random.default_rng(0)
    right = draw.random(400) < 0.7
    scores = right + draw.normal(size=400)
    found = auc(scores, right, 0)
    assert found.value is not None
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]
    assert found == auc(scores, right, 0)
    same = auc_gain(scores, 2 * scores, right, 0)
    assert (same.value, same.interval) == (0.0, (0.0, 0.0))


def test_youden_takes_the_largest_difference_of_shares() -> None:
    # From 0.3 all right ones and one of three wrong ones are accepted; from 0.5 two of three and none.
    assert choose_threshold(SCORES, RIGHT, None) == 0.3
    cut = cut_at(SCORES, RIGHT, 0.3)
    assert (cut.false_rejections, cut.caught, cut.accuracy) == (0, 2 / 3, 3 / 4)


@pytest.mark.parametrize(("share", "threshold"), [(0.0, 0.3), (0.34, 0.5), (0.67, 0.6)])
def test_no_more_right_ones_are_rejected_than_allowed(share: float, threshold: float) -> None:
    assert choose_threshold(SCORES, RIGHT, share) == threshold
    rejected = cut_at(SCORES, RIGHT, threshold).false_rejections
    assert rejected is not None
    assert rejected <= share


def test_without_a_wrong_prediction_nothing_can_be_chosen() -> None:
    right = np.ones(6, np.bool_)
    with pytest.raises(InputError, match=r"none of the 6 examples .* or --false-rejections"):
        choose_threshold(SCORES, right, None)
    assert choose_threshold(SCORES, right, 0.2) == 0.2


def test_a_submodel_is_scikit_learns_logistic_regression(data: tuple[Examples, Examples]) -> None:
    features, labels = data[0].inputs.flatten(1)[:, 8:56], data[0].labels
    ours = train_submodel("layer", features, labels, 10).logits(features).softmax(dim=1)
    wide = features.numpy().astype(np.float64)
    spread = wide.std(axis=0)
    standard = (wide - wide.mean(axis=0)) / np.where(spread > 1e-6, spread, 1)
    theirs = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(standard, labels.numpy())
    assert np.abs(ours.numpy() - theirs.predict_proba(standard)).max() < 0.01


Clouds = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
UNUSED = torch.zeros(20, 3)


@pytest.fixture(scope="module")
def clouds() -> Clouds:
    """Features of three classes, their labels, and new features."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 3
    features = torch.randn(300, 4, generator=draw) * torch.tensor([1.0, 2, 1, 3])
    return features + 3 * labels[:, None], labels, torch.randn(20, 4, generator=draw)


def test_mahalanobis_is_the_distance_to_the_nearest_class(clouds: Clouds) -> None:
    features, labels, new = clouds
    means = torch.stack([features[labels == index].mean(dim=0) for index in range(3)])
    theirs = EmpiricalCovariance(assume_centered=True).fit((features - means[labels]).numpy())
    nearest = np.min([theirs.mahalanobis((new - mean).numpy()) for mean in means], axis=0)
    assert np.allclose(Mahalanobis.fit(features, labels)([new], UNUSED), -nearest, rtol=1e-3)
    whole = EmpiricalCovariance().fit(features.numpy()).mahalanobis(new.numpy())
    relative = RelativeMahalanobis.fit(features, labels)([new], UNUSED)
    assert np.allclose(relative, whole - nearest, rtol=1e-3)


def test_neighbors_are_those_of_scikit_learn(
    clouds: Clouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, _, new = clouds
    monkeypatch.setattr(detectors, "EXAMPLES_PER_NEIGHBOR", 60)
    theirs = Neighbors(n_neighbors=5).fit(normalize(features.numpy()))
    distances, _ = theirs.kneighbors(normalize(new.numpy()))
    found = NearestNeighbors.fit(features, 0)([new], UNUSED)
    assert np.allclose(found, -distances[:, -1], atol=1e-4)
    monkeypatch.setattr(detectors, "MOST_NEIGHBORS", 40)
    assert NearestNeighbors.fit(features, 0).known.shape == (40, 4)


def test_the_density_is_that_of_scipy(clouds: Clouds) -> None:
    features, labels, new = clouds
    densities = [
        multivariate_normal(own.mean(axis=0), LedoitWolf().fit(own).covariance_).pdf(new.numpy())
        for own in (features[labels == index].double().numpy() for index in range(3))
    ]
    found = FeatureDensity.fit(features, labels)([new], UNUSED)
    assert np.allclose(found, np.log(np.mean(densities, axis=0)), atol=1e-6)


def test_vim_finds_the_last_layer_and_what_lies_outside_of_the_data(clouds: Clouds) -> None:
    features, _, new = clouds
    layer = torch.nn.Linear(4, 3)
    with torch.no_grad():
        logits, outputs = layer(features), layer(new)
        origin = -torch.linalg.pinv(layer.weight) @ layer.bias
    uncentered = (features - origin).double()
    _, vectors = np.linalg.eigh((uncentered.T @ uncentered).numpy())
    outside = np.linalg.norm((new - origin).double().numpy() @ vectors[:, :2], axis=1)
    usual = np.linalg.norm(uncentered.numpy() @ vectors[:, :2], axis=1)
    scale = logits.max(dim=1).values.double().mean().item() / usual.mean()
    expected = outputs.double().logsumexp(dim=1).numpy() - scale * outside
    assert np.allclose(VirtualLogit.fit(features, logits)([new], outputs), expected, atol=1e-3)
    with pytest.raises(ValueError, match="not a linear function"):
        VirtualLogit.fit(features, logits.softmax(dim=1) ** 4)


def test_a_detector_that_does_not_fit_is_named(
    clouds: Clouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, labels, new = clouds
    monkeypatch.setattr(detectors, "_MOST_COVARIANCES", 10)
    fitted, notes = fit_detectors((), features, features[:, :3], labels, 0)
    assert "DDU" not in fitted
    assert notes == ("DDU: 3 covariances of 4 features are too large",)
    # Features that never vary, and a class with one example.
    monkeypatch.undo()
    constant = torch.cat((features, torch.zeros(300, 2)), dim=1)
    labels = torch.cat((labels[:-1], torch.tensor([7])))
    fitted, notes = fit_detectors((), constant, features[:, :3], labels, 0)
    assert notes == ()
    wide = torch.cat((new, torch.zeros(20, 2)), dim=1)
    for name, detector in fitted.items():
        if not isinstance(detector, Validity):  # there are no sub-models
            assert detector([wide], UNUSED).isfinite().all(), name
