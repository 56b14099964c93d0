"""Whether the bug is in this code at all, and of which type."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.locate.blame import SUSPECTS
from epochzero.locate.bug_kind import TYPES, BugKind, KindModel, features, kind_model, read_kind
from epochzero.locate.query import query_of
from epochzero.locate.report import Report


def kind(title: str, text: str = "") -> BugKind:
    return read_kind(query_of(Report(title, text)))


@pytest.mark.parametrize(
    ("title", "text", "type"),
    [
        ("Gradient of the optimizer is wrong", "The loss is NaN after one epoch.", "training"),
        ("Broken link in the documentation", "The tutorial on the website is gone.", "ndl"),
        (
            "CUDA error on the second GPU",
            "The kernel crashes with out of memory on cuda device 1.",
            "gpu",
        ),
    ],
)
def test_a_plain_report_has_the_type_it_speaks_of(title: str, text: str, type: str) -> None:
    assert kind(title, text).type == type


def test_a_build_that_breaks_on_one_system_is_likelier_extrinsic_than_a_wrong_gradient() -> None:
    outside = kind(
        "Build fails on Windows with CUDA 10.1",
        "CMake Error: the build fails since upgrading to cuda 10.1, it works on Linux.",
    )
    inside = kind(
        "Gradient of the layer is wrong", "The backward pass of the layer forgets the bias."
    )
    assert outside.extrinsic.probability > 0.5 > inside.extrinsic.probability
    assert outside.extrinsic.suspect in SUSPECTS
    assert "Build fails on Windows with CUDA 10.1" in outside.extrinsic.evidence


def test_who_blames_nothing_has_no_suspect_and_no_evidence() -> None:
    extrinsic = kind("The sum is twice what it should be").extrinsic
    assert (extrinsic.suspect, extrinsic.name, extrinsic.evidence) == ("", "", ())


@given(st.text(), st.text())
def test_any_text_has_a_kind(title: str, text: str) -> None:
    found = kind(title, text)
    assert found.type == max(TYPES, key=found.probabilities.__getitem__)
    assert math.isclose(sum(found.probabilities.values()), 1.0)
    assert 0.0 <= found.extrinsic.probability <= 1.0


def test_the_same_report_has_the_same_kind() -> None:
    report = ("CUDA error", "It fails with torch 1.4 on a GTX 1080.")
    assert kind(*report) == kind(*report)


def test_when_a_report_was_opened_and_its_number_tell_nothing() -> None:
    early = Report("CUDA error", "It fails.", id="1", opened=1.0)
    late = Report("CUDA error", "It fails.", id="2", opened=2e9)
    assert features(query_of(early)) == features(query_of(late))


def test_a_model_weighs_features_as_logistic_regression_does() -> None:
    model = KindModel({"bias": 0.0, "a": math.log(3)}, {"a": (math.log(2), 0, 0, 0, 0, 0)})
    assert math.isclose(model.extrinsic_probability({"bias": 1.0, "a": 1.0}), 0.75)
    assert math.isclose(model.type_probabilities({"a": 1.0, "unknown": 9.0})["model"], 2 / 7)
    calibrated = KindModel(model.extrinsic, model.types, (2.0, -math.log(9)))
    assert math.isclose(calibrated.extrinsic_probability({"a": 1.0}), 0.5)


def test_the_packaged_model_knows_every_signal_that_can_occur() -> None:
    model = kind_model()
    assert model.calibration[0] > 0
    assert {"bias", "has_traceback", "title_has:gpu", "speaks_of:ndl"} <= model.types.keys()
    assert all(len(row) == len(TYPES) for row in model.types.values())
