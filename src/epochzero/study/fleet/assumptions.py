"""Assumptions of the simulation of a fleet: each number with its range and source.

``published.toml`` describes fleets, ``measured.toml`` what the tools achieve.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.errors import InputError

_LARGEST = {
    "gpu_hours": 1e9,
    "failed_gpu_ratio": 1e6,
    "spread": 5.0,
    "retries": 1000.0,
    "person_hours": 1e6,
}
"""Assumptions that are not shares; all others are at most 1."""


@dataclass(frozen=True, slots=True)
class FleetAssumption:
    """An uncertain number.

    Attributes:
        title: for people.
        unit: of the number.
        low, high: its range.
        mode: the most probable value; None for a uniform distribution.
        source: of the numbers, or a statement that they are assumed.
        results: for measured numbers, their positions in ``bench/results``.
    """

    title: str
    unit: str
    low: float
    high: float
    source: str
    mode: float | None = None
    results: Mapping[str, tuple[str, ...]] | None = None

    def at(self, shares: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return quantiles of its distribution, which is triangular or uniform."""
        low, width = self.low, self.high - self.low
        share = np.asarray(shares, np.float64)
        if self.mode is None or not width:
            return np.asarray(low + width * share)
        peak = (self.mode - low) / width
        rising = low + width * np.sqrt(share * peak)
        return np.where(
            share <= peak, rising, self.high - width * np.sqrt((1 - share) * (1 - peak))
        )


@cache
def assumptions() -> Mapping[str, FleetAssumption]:
    """Return all assumptions, by name."""
    found = {}
    for name in ("published", "measured"):
        text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
        for key, fields in tomllib.loads(text).items():
            places = fields.get("results")
            if places is not None:
                benches = ", ".join(
                    sorted({f"bench/results/{place[0]}.json" for place in places.values()})
                )
                fields = {"source": f"measured: {benches}", **fields}
            found[key] = FleetAssumption(**fields)
    return found


def with_own(path: Path) -> Mapping[str, FleetAssumption]:
    """Return the assumptions with replacements from a TOML file: a number, or ``low`` and ``high``.

    Raises:
        InputError: the file cannot be read, or names or numbers in it are invalid.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as TOML: {error}") from error
    found = dict(assumptions())
    for name, value in data.items():
        if name not in found:
            raise InputError(
                f"{path}: unknown assumption {name!r}; choose one of {', '.join(found)}"
            )
        found[name] = _own(path, name, value, found[name])
    return found


def _own(path: Path, name: str, value: Any, assumption: FleetAssumption) -> FleetAssumption:
    fields = value if isinstance(value, dict) else {"low": value, "high": value}
    low, mode, high = (_number(fields.get(key)) for key in ("low", "mode", "high"))
    if low is None or high is None or not 0 <= low <= (low if mode is None else mode) <= high:
        raise InputError(
            f"{path}: {name}: expected a number, or low and high with an optional mode between"
        )
    if high > (largest := _LARGEST.get(name, 1.0)):
        raise InputError(
            f"{path}: {name}: {high:g} exceeds the limit of {largest:g} ({assumption.unit})"
        )
    return FleetAssumption(
        assumption.title, assumption.unit, low, high, str(fields.get("source", path.name)), mode
    )


def _number(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable else None


def draw(
    given: Mapping[str, FleetAssumption], count: int, generator: np.random.Generator
) -> list[dict[str, float]]:
    """Draw independent sets of values."""
    columns = {name: assumption.at(generator.random(count)) for name, assumption in given.items()}
    return [{name: float(values[at]) for name, values in columns.items()} for at in range(count)]
