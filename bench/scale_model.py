"""A day of 10^8 logs, simulated: scheduling, storage and what they cost.

Each hour's logs are one run. Its driver lists them, makes parts and hands them to workers one by one; a
worker fetches the logs of a part, diagnoses them and writes one object; workers are lost now and then, and
their part is done again log by log. What was measured here: processor time of a log and of a start. What is
assumed stands in `ASSUMED`, with prices of the order that the large providers ask; change them for yours.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import linear_regression

__all__ = ["ASSUMED", "Fleet", "Measured", "Simulated", "simulate"]

LOGS_PER_PART = 250
ASSUMED = {
    "get_seconds_median": 0.03,
    "get_seconds_spread": 0.5,  # sigma of a lognormal
    "gets_at_once": 16,
    "put_seconds": 0.06,
    "list_seconds": 0.1,  # of 1,000 keys
    "driver_seconds_a_part": 0.004,
    "part_spread": 0.2,  # sigma of a lognormal, of the processor time of a part
    "lost_workers_an_hour": 0.01,  # of each worker
    "start_of_a_worker_seconds": 5.0,
    "result_bytes_a_log": 1_000,
    "dollars_a_core_hour": 0.05,
    "dollars_a_million_gets": 0.4,
    "dollars_a_thousand_puts_or_lists": 0.005,
    "dollars_a_gigabyte_month": 0.023,
}
HOURLY = tuple(1 + 0.6 * math.sin(2 * math.pi * (hour - 9) / 24) for hour in range(24))
"""Failures come with the working day: share of an average hour."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Processor seconds of a log, and of the start of a run with its workers."""

    log_seconds: float
    start_seconds: float

    @staticmethod
    def of(spent: Mapping[int, float]) -> Measured:
        """From the processor seconds of runs by their numbers of logs: the line that is nearest to them."""
        found = linear_regression([*spent], [*spent.values()])
        return Measured(found.slope, found.intercept)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is simulated.

    Attributes:
        runs: logs of each run.
        workers: at a time.
        layout: ``objects`` in a bucket, ``archives`` of 10,000 logs in one, or ``here``, on a disk.
    """

    runs: tuple[int, ...]
    workers: int
    layout: str

    @staticmethod
    def here(logs: int) -> Fleet:
        """A run of this machine."""
        return Fleet((logs,), 2, "here")

    @staticmethod
    def day(layout: str, logs: float = 1e8, workers: int = 16) -> Fleet:
        """A day, an hour a run."""
        return Fleet(tuple(round(logs / 24 * share) for share in HOURLY), workers, layout)


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of it.

    Attributes:
        logs, parts, workers: how many.
        processor_seconds: of workers and driver.
        longest_run_seconds: an hour is 3,600.
        busy: share of the workers' time in which they work, in the longest run.
        lost_workers: how often one was lost.
        dollars: by what they are paid for, a day; of storage, those of a month's results.
    """

    logs: int
    parts: int
    workers: int
    processor_seconds: float
    longest_run_seconds: float
    busy: float
    lost_workers: int
    dollars: Mapping[str, float]

    def described(self) -> Mapping[str, object]:
        """Its form in the result file."""
        return asdict(self)


def simulate(measured: Measured, fleet: Fleet, seed: int = 0) -> Simulated:
    """Runs the parts of all runs through workers, each taken by the one that is free first."""
    draw = random.Random(seed)
    longest = busy = processor = held = 0.0
    parts = lost = 0
    for logs in fleet.runs:
        count = math.ceil(logs / LOGS_PER_PART)
        listed = (
            0.0
            if fleet.layout == "here"
            else ASSUMED["list_seconds"] * _keys(fleet.layout, logs) / 1000
        )
        # Workers start while the driver does.
        begun = listed + measured.start_seconds / fleet.workers
        free = [begun] * fleet.workers
        handed, worked = begun, 0.0
        for number in range(count):
            size = min(LOGS_PER_PART, logs - number * LOGS_PER_PART)
            computed = size * measured.log_seconds * _lognormal(draw, ASSUMED["part_spread"])
            took = computed + _waited(draw, fleet.layout, size)
            if draw.random() < ASSUMED["lost_workers_an_hour"] * took / 3600:
                lost += 1
                took = 1.5 * took + ASSUMED["start_of_a_worker_seconds"]
                computed *= 1.5
            handed = max(handed + ASSUMED["driver_seconds_a_part"], free[0])
            heapq.heapreplace(free, handed + took)
            worked += took
            processor += computed
        seconds = max(free)
        held += seconds * fleet.workers
        if seconds > longest:
            longest, busy = seconds, worked / (seconds * fleet.workers)
        parts += count
        processor += measured.start_seconds
    logs = sum(fleet.runs)
    dollars = _dollars(fleet, logs, parts, held) if fleet.layout != "here" else {}
    return Simulated(
        logs,
        parts,
        fleet.workers,
        round(processor, 1),
        round(longest, 1),
        round(busy, 2),
        lost,
        dollars,
    )


def _lognormal(draw: random.Random, spread: float) -> float:
    """Of mean 1."""
    return draw.lognormvariate(-spread * spread / 2, spread)


def _keys(layout: str, logs: int) -> float:
    return logs if layout == "objects" else logs / 10_000


def _waited(draw: random.Random, layout: str, size: int) -> float:
    """Seconds that a part waits for storage: objects are fetched several at a time."""
    if layout == "here":
        return 0.0
    once = ASSUMED["get_seconds_median"] * draw.lognormvariate(0, ASSUMED["get_seconds_spread"])
    rounds = math.ceil(size / ASSUMED["gets_at_once"]) if layout == "objects" else 0
    return rounds * once + ASSUMED["put_seconds"]


def _dollars(fleet: Fleet, logs: int, parts: int, held_seconds: float) -> Mapping[str, float]:
    keys = _keys(fleet.layout, logs)
    requests = ASSUMED["dollars_a_thousand_puts_or_lists"] / 1000
    costs = {
        "workers": held_seconds / 3600 * ASSUMED["dollars_a_core_hour"],
        "gets": keys * ASSUMED["dollars_a_million_gets"] / 1e6,
        "puts": parts * requests,
        "lists": keys / 1000 * requests,
        "results_kept_a_month": 30 * logs * ASSUMED["result_bytes_a_log"] / 1e9
        * ASSUMED["dollars_a_gigabyte_month"],
    }  # fmt: skip
    return {name: round(value, 2) for name, value in costs.items()}
