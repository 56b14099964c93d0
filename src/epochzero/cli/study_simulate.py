"""``epochzero study simulate``: estimates the savings of checks, retries and diagnosis on a fleet of jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from epochzero.cli.layout import wrapped
from epochzero.cli.line import line
from epochzero.cli.output import format_option, out_option, seed_option, write_study

_MOST_JOBS = 10_000_000


def _sizes(text: str) -> list[int]:
    """Return the sizes of ``1000``, or ``1000..100000``: each ten times the previous one."""
    found = re.fullmatch(r"(\d{1,8})(?:\.\.(\d{1,8}))?", text)
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if not 0 < first <= last <= _MOST_JOBS:
        hint = "give a number such as 5000, or a range such as 1000..100000"
        raise click.BadParameter(f"{text!r}: {hint}")
    sizes = [first]
    while sizes[-1] * 10 < last:
        sizes.append(sizes[-1] * 10)
    return sizes if sizes[-1] == last else [*sizes, last]


@click.command(name="simulate")
@click.option("--jobs-per-day", metavar="N|N..N", type=_sizes, default="1000..100000", show_default=True,
              help="Jobs per day, or a range in powers of ten.")  # fmt: skip
@click.option(
    "--days",
    type=click.IntRange(1, 3660),
    default=30,
    show_default=True,
    help="Number of days to simulate.",
)
@click.option("--assumptions", "own", metavar="FILE.toml", type=click.Path(path_type=Path, dir_okay=False),
              help="File with values for your platform, which replace the defaults.")  # fmt: skip
@seed_option()
@out_option()
@format_option("Output format of the summary.")
def command(
    jobs_per_day: list[int], days: int, own: Path | None, seed: int, out: Path, form: str
) -> None:
    """Estimate what checks, diagnosis-based retries and faster diagnosis would save on a fleet.

    Jobs, failures, retries and GPU time are drawn from published numbers. The effect of the tools comes
    from our measurements. All other values are assumed. All inputs and results are ranges. The report
    lists each input with its source and shows which one matters most.

    \b
    epochzero study simulate --out report/
    epochzero study simulate --jobs-per-day 5000 --assumptions ours.toml --out report/

    A line of FILE.toml is `failed_share = 0.2`, or `failed_share = { low = 0.15, high = 0.25 }`.
    The report lists the names.

    Exit code 0 if the report was written, 2 if the input is invalid.
    """
    from epochzero.study.fleet import assumptions, study_fleet, with_own

    given = with_own(own) if own else assumptions()
    with line() as shown:
        studied = study_fleet(given, jobs_per_day, days, seed=seed, on_progress=shown.show)
    write_study(studied, out, form, _write_text)


def _write_text(summary: Mapping[str, Any]) -> None:
    for fleet in summary["fleets"]:
        click.echo(click.style(f"{fleet['jobs_per_day']:,} jobs a day", bold=True))
        lost = fleet["wasted_share"]
        click.echo(wrapped("  Wasted", f"{_range(fleet['wasted_gpu_hours_per_day'])} GPU hours a day, {_percent(lost)}"))  # fmt: skip
        for name, value in fleet["saved"].items():
            savings = []
            if value["gpu_hours_per_day"]["p95"]:
                savings.append(f"{_range(value['gpu_hours_per_day'])} GPU hours a day, {_percent(value['share'])}")  # fmt: skip
            if value["person_hours_per_day"]["p95"]:
                savings.append(f"{_range(value['person_hours_per_day'])} hours of people")
            click.echo(wrapped(f"  {name}", "; ".join(savings)))
    click.echo(
        "Medians with 5th to 95th percentile: savings by each tool alone, and by all together."
    )


def _range(record: dict[str, float]) -> str:
    return f"{record['median']:,.0f} ({record['p5']:,.0f} to {record['p95']:,.0f})"


def _percent(record: dict[str, float]) -> str:
    return f"{100 * record['median']:.1f}\xa0% ({100 * record['p5']:.1f} to {100 * record['p95']:.1f}) of all"
