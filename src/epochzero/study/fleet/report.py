"""Report of the savings of a fleet of jobs: a Monte Carlo simulation over all uncertain assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from epochzero.reports.figures import Figure, ranges, require_matplotlib
from epochzero.reports.page import ReportPage, Section, StudyResult
from epochzero.reports.tables import Column, Row, Table
from epochzero.study.fleet.assumptions import FleetAssumption, draw
from epochzero.study.fleet.model import Outcome, expected, simulated

SCHEMA = "epochzero.study.simulate/1"
DRAWS = 200
_PERCENTILES = (0.05, 0.5, 0.95)
_MOST_SENSITIVE = 12

_TOOLS: tuple[tuple[str, str, Callable[[Outcome], float], Callable[[Outcome], float]], ...] = (
    ("check", "Checking before the run", lambda o: o.check, lambda o: o.person * o.caught / max(o.failures, 1)),
    ("retry", "Retries decided by diagnosis", lambda o: o.retry, lambda o: 0.0),
    ("diagnosis", "Faster diagnosis", lambda o: 0.0, lambda o: o.person_diagnosis),
    ("all", "All together", lambda o: o.both, lambda o: o.person_all),
)  # fmt: skip
"""Name, title, GPU hours saved, working hours saved."""


def study_fleet(
    given: Mapping[str, FleetAssumption],
    jobs_per_day: Sequence[int],
    days: int,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    on_progress: Callable[[str, int, int], object] = lambda *_: None,
) -> StudyResult:
    """Simulate fleets, each many times with different values of the assumptions.

    Args:
        given: the assumptions, by name.
        jobs_per_day: size of each fleet.
        days: simulated days.
        seed: of the random numbers.
        draws: number of simulations of each fleet.
        on_progress: called with what is simulated, the number of simulations so far and that of all.

    Raises:
        InputError: matplotlib is not installed.
    """
    require_matplotlib()
    values = draw(given, draws, np.random.default_rng([seed, 0]))
    fleets: dict[int, list[Outcome]] = {}
    for size in jobs_per_day:
        generator = np.random.default_rng([seed, size])
        fleets[size] = []
        for number, value in enumerate(values, 1):
            fleets[size].append(simulated(value, size * days, generator))
            on_progress(f"simulations of {size:,} jobs a day", number, draws)
    largest = max(jobs_per_day)
    sections = (
        Section("What is saved", [*_saved(fleets, days), _saved_figure(fleets[largest])]),
        Section("What failures cost", [_cost(fleets, days)]),
        Section("What matters most", _sensitivity(given)),
        Section("Assumptions", [_assumptions(given), *_model()]),
    )
    summary = _summary(fleets, days, draws, seed)
    lead = _lead(fleets[largest], largest, days)
    return StudyResult(ReportPage("What checking, retrying and diagnosing save", lead, sections), summary)  # fmt: skip


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, _PERCENTILES)
    return float(low), float(middle), float(high)


def _share(outcome: Outcome, hours: float) -> float:
    return hours / outcome.total if outcome.total else 0.0


def _lead(outcomes: Sequence[Outcome], size: int, days: int) -> str:
    low, middle, high = _percentiles([_share(outcome, outcome.both) for outcome in outcomes])
    hours = _percentiles([outcome.both / days for outcome in outcomes])
    return (
        f"At {size:,} jobs per day, the tools would save {100 * middle:.1f} % of all GPU time (5th to 95th "
        f"percentile {100 * low:.1f} to {100 * high:.1f} %): {hours[1]:,.0f} GPU hours a day ({hours[0]:,.0f} to "
        f"{hours[2]:,.0f}). This is a calculation from published, measured and assumed values, not a "
        "measurement on a platform."
    )


def _saved(fleets: Mapping[int, Sequence[Outcome]], days: int) -> list[Table]:
    rows: list[Row] = []
    for size, outcomes in fleets.items():
        for _, title, hours, person in _TOOLS:
            gpu = _percentiles([hours(outcome) / days for outcome in outcomes])
            share = _percentiles([_share(outcome, hours(outcome)) for outcome in outcomes])
            people = _percentiles([person(outcome) / days for outcome in outcomes])
            cells = (cell for row in (gpu, share, people) for cell in _cells(row))
            rows.append((f"{size:,} jobs a day: {title}", *cells))
    columns = (
        Column("Saved by"),
        Column("GPU hours a day", "number"), Column("GPU hours, 5–95 %", "interval", interval_of="number"),
        Column("Of all GPU time", "share"), Column("Of all, 5–95 %", "interval"),
        Column("People's hours a day", "number"), Column("People, 5–95 %", "interval", interval_of="number"),
    )  # fmt: skip
    note = "Medians. Savings that two tools would both make count once in “All together”."
    draws = len(next(iter(fleets.values())))
    return [Table("saved", "What is saved", columns, tuple(rows), draws, "simulations of each fleet", notes=(note,))]  # fmt: skip


def _cells(
    percentiles: tuple[float, float, float],
) -> tuple[float | None, tuple[float, float] | None]:
    """Return median and interval; empty cells if a tool saves nothing of this kind."""
    low, middle, high = percentiles
    return (middle, (low, high)) if high else (None, None)


def _saved_figure(outcomes: Sequence[Outcome]) -> Figure:
    titles, values, middles = [], [], []
    for _, title, hours, _ in _TOOLS:
        low, middle, high = _percentiles([_share(outcome, hours(outcome)) for outcome in outcomes])
        if high:
            titles.append(title)
            values.append((low, high))
            middles.append(middle)
    caption = "Share of GPU time saved in the largest fleet: 5th to 95th percentile, with the median marked."
    return ranges("saved-figure", caption, titles, values, axis="GPU time saved", middle=middles)


def _cost(fleets: Mapping[int, Sequence[Outcome]], days: int) -> Table:
    rows: list[Row] = []
    for size, outcomes in fleets.items():
        failures = _percentiles([outcome.failures / days for outcome in outcomes])
        wasted = _percentiles([outcome.wasted / days for outcome in outcomes])
        share = _percentiles([_share(outcome, outcome.wasted) for outcome in outcomes])
        caught = _percentiles([outcome.caught / days for outcome in outcomes])
        given_up = _percentiles([outcome.given_up / days for outcome in outcomes])
        rows.append((f"{size:,} jobs a day", failures[1], wasted[1], (wasted[0], wasted[2]), share[1],
                     (share[0], share[2]), caught[1], given_up[1]))  # fmt: skip
    columns = (
        Column("Fleet"), Column("Failed jobs a day", "number"), Column("Wasted GPU hours a day", "number"),
        Column("Wasted, 5–95 %", "interval", interval_of="number"), Column("Of all GPU time", "share"),
        Column("Of all, 5–95 %", "interval"), Column("Predicted", "number"),
        Column("Given up wrongly", "number"),
    )  # fmt: skip
    notes = (
        "Failed jobs: without tools, first attempts and retries that fail. Predicted: failed jobs per day that "
        "checking predicts. Given up wrongly: jobs per day that would succeed on a retry but are not retried.",
    )
    return Table("cost", "What failures cost", columns, tuple(rows), len(next(iter(fleets.values()))),
                 "simulations of each fleet", notes=notes)  # fmt: skip


def _sensitivity(given: Mapping[str, FleetAssumption]) -> list[Table | Figure | str]:
    """Vary each assumption between its 5th and 95th percentile, with the others at their medians."""
    medians = {name: float(assumption.at(0.5)) for name, assumption in given.items()}

    def saved(name: str, value: float) -> float:
        outcome = expected({**medians, name: value}, 1)
        return _share(outcome, outcome.both)

    rows = []
    for name, assumption in given.items():
        low, high = (float(assumption.at(_PERCENTILES[0])), float(assumption.at(_PERCENTILES[2])))
        rows.append((assumption.title, low, high, saved(name, low), saved(name, high)))
    rows.sort(key=lambda row: -abs(row[3] - row[4]))
    middle = saved("spread", medians["spread"])
    first = rows[:_MOST_SENSITIVE]
    figure = ranges(
        "sensitivity-figure",
        "GPU time saved by all tools when one assumption is at its 5th or 95th percentile and all others are at their "
        "medians (the line).",
        [row[0] for row in first],
        [(min(row[3:]), max(row[3:])) for row in first],
        axis="GPU time saved",
        middle=middle,
    )  # fmt: skip
    columns = (
        Column("Assumption"), Column("5th percentile", "number"), Column("95th percentile", "number"),
        Column("Saved at the 5th", "share"), Column("Saved at the 95th", "share"),
    )  # fmt: skip
    table = Table(
        "sensitivity", "What matters most", columns, tuple(rows), len(rows), "assumptions"
    )
    note = "The line differs from the median above because savings are not a linear function of the assumptions."
    return [figure, note, table]


def _assumptions(given: Mapping[str, FleetAssumption]) -> Table:
    rows: tuple[Row, ...] = tuple(
        (a.title, name, a.low, a.mode, a.high, a.unit, a.source) for name, a in given.items()
    )
    columns = (
        Column("Assumption"), Column("Name", "code"), Column("Low", "number"), Column("Likeliest", "number"),
        Column("High", "number"), Column("Unit"), Column("Source"),
    )  # fmt: skip
    note = "Triangular between low and high; uniform if no mode is given. All values are drawn independently."
    return Table(
        "assumptions", "Assumptions", columns, rows, len(rows), "assumptions", notes=(note,)
    )


def _model() -> list[str]:
    return [
        "A failure is either an infrastructure failure or one of code, data or environment, which occurs in a phase of the "
        "job with the shares and costs of Zhang et al., ICSE 2020, Figure 10. GPU time is lognormal.",
        "Infrastructure failures and a few others are transient: each retry may succeed. All others fail again at "
        "each retry, after the same time as the first attempt. Checking predicts only these.",
        "A failure that checking predicts costs no GPU time. The time that a person needs to repair it is the same "
        "as without the prediction and is not counted. Idle GPUs during the search for a cause are not counted either, nor "
        "is the cost of checking itself, which requires no GPU.",
    ]


def _summary(
    fleets: Mapping[int, Sequence[Outcome]], days: int, draws: int, seed: int
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "days": days,
        "draws": draws,
        "seed": seed,
        "fleets": [_fleet(size, outcomes, days) for size, outcomes in fleets.items()],
    }


def _fleet(size: int, outcomes: Sequence[Outcome], days: int) -> dict[str, Any]:
    return {
        "jobs_per_day": size,
        "failures_per_day": _distribution([outcome.failures / days for outcome in outcomes]),
        "wasted_gpu_hours_per_day": _distribution([outcome.wasted / days for outcome in outcomes]),
        "wasted_share": _distribution([_share(outcome, outcome.wasted) for outcome in outcomes]),
        "given_up_per_day": _distribution([outcome.given_up / days for outcome in outcomes]),
        "saved": {
            name: {
                "gpu_hours_per_day": _distribution([hours(outcome) / days for outcome in outcomes]),
                "share": _distribution([_share(outcome, hours(outcome)) for outcome in outcomes]),
                "person_hours_per_day": _distribution(
                    [person(outcome) / days for outcome in outcomes]
                ),
            }
            for name, _, hours, person in _TOOLS
        },
    }


def _distribution(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(("p5", "median", "p95"), _percentiles(values), strict=True))
