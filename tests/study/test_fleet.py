"""A fleet on paper: every draw beside what it must come to on average, and where its numbers stand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from epochzero.errors import InputError
from epochzero.study.fleet import assumptions, expected, simulated, study_fleet, with_own

MIDDLE = {name: float(one.at(0.5)) for name, one in assumptions().items()} | {"spread": 0.5}
JOBS = 2_000_000


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"retries": 0.0},
        {"retries": 3.0, "retry_success": 0.5, "transient_share": 0.5},
        {"infrastructure_share": 0.0},
        {"infrastructure_share": 1.0},
        {"adoption": 0.0},
    ],
)
def test_simulations_come_to_what_is_expected(other: dict[str, float]) -> None:
    values = MIDDLE | other
    drawn = asdict(simulated(values, JOBS, np.random.default_rng(1)))
    for name, mean in asdict(expected(values, JOBS)).items():
        assert drawn[name] == pytest.approx(mean, rel=0.03, abs=JOBS * 1e-6), name


def test_waste_without_tools_is_the_closed_form() -> None:
    """All fail in the same way at every one of 2 retries: three attempts of 20 GPU hours each."""
    values = MIDDLE | {
        "failed_share": 0.5, "infrastructure_share": 0.0, "transient_share": 0.0, "retries": 2.0,
        "gpu_hours": 10.0, "failed_gpu_ratio": 2.0,
    }  # fmt: skip
    waste = JOBS * 0.5 * 3 * 20.0
    assert expected(values, JOBS).wasted == pytest.approx(waste)
    runs = [simulated(values, JOBS, np.random.default_rng(seed)).wasted for seed in range(8)]
    error = np.std(runs, ddof=1) / np.sqrt(len(runs))
    assert abs(np.mean(runs) - waste) < 4 * error


def test_all_together_saves_no_more_than_there_is_and_counts_nothing_twice() -> None:
    perfect = MIDDLE | {
        "adoption": 1.0,
        "field_share": 1.0,
        "check_recall": 1.0,
        "retry_saved": 1.0,
    }
    found = expected(perfect | {"infrastructure_share": 0.0, "transient_share": 0.0}, 1000)
    assert found.check == pytest.approx(found.wasted)
    assert found.both == pytest.approx(found.wasted)
    usual = expected(MIDDLE, 1000)
    assert max(usual.check, usual.retry) < usual.both < usual.check + usual.retry


def test_what_is_called_measured_stands_in_the_results(repository: Path) -> None:
    measured = {name: one for name, one in assumptions().items() if one.results}
    assert len(measured) == 4
    for name, one in measured.items():
        for end, (bench, *place) in (one.results or {}).items():
            value = json.loads((repository / f"bench/results/{bench}.json").read_text())["numbers"]
            for key in place:
                value = value[key]
            assert getattr(one, end) == pytest.approx(value), (name, end)


def test_each_assumption_has_a_range_and_a_source() -> None:
    for one in assumptions().values():
        assert 0 <= one.low <= (one.mode if one.mode is not None else one.low) <= one.high
        assert one.source
        assert one.at(0.0) == pytest.approx(one.low)
        assert one.at(1.0) == pytest.approx(one.high)
    shares = np.random.default_rng(0).random(50_000)
    failed = assumptions()["failed_share"]
    assert failed.mode is not None
    mean = (failed.low + failed.mode + failed.high) / 3
    assert failed.at(shares).mean() == pytest.approx(mean, rel=0.01)


def test_own_numbers_take_the_place_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("failed_share = 0.1\nretries = { low = 1, mode = 2, high = 4 }\n")
    given = with_own(file)
    assert (given["failed_share"].low, given["failed_share"].high) == (0.1, 0.1)
    assert given["retries"].mode == 2
    assert given["failed_share"].source == "ours.toml"
    studied = study_fleet(given, [500], 2, draws=5)
    assert studied.summary["fleets"][0]["failures_per_day"]["median"] == pytest.approx(50, rel=0.4)


@pytest.mark.parametrize(
    "text",
    [
        "failed_share = 1.5", "failed_share = nan", "failed_share = true", "failed_share = 'much'",
        "failed_share = { low = 0.3 }", "failed_share = { low = 0.3, high = 0.2 }", "failures = 0.1",
        "retries = 1e9", "failed_share = ", "gpu_hours = -1",
    ],
)  # fmt: skip
def test_wrong_numbers_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"ours\.toml"):
        with_own(file)


def test_the_same_seed_is_the_same_report() -> None:
    one, other = (study_fleet(assumptions(), [200, 2000], 1, seed=3, draws=8) for _ in range(2))
    assert one.summary == other.summary
    assert [table.rows for table in one.report.tables] == [
        table.rows for table in other.report.tables
    ]
    assert [figure.svg for figure in one.report.figures] == [f.svg for f in other.report.figures]
    assert "not a measurement" in one.report.lead
    largest = one.report.tables[2].rows[0]
    assert largest[0] in {a.title for a in assumptions().values()}
