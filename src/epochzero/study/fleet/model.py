"""A model of a fleet of jobs: what failures cost, and what checks, diagnosis-based retries and diagnosis save.

Jobs succeed or fail. A failure is caused by the infrastructure, or by code, data or environment; a failure of the
latter kind occurs in one of four phases, which determines its cost (Zhang et al., ICSE 2020, Figure 10), and usually
recurs in every retry. GPU time is lognormal. A failed retry takes as long as the first attempt. The successful
attempt is not waste and is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from epochzero.study.published import zhang2020

_AT_ONCE = 1 << 20
Values = Mapping[str, float]
Hours = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Totals of a fleet, in GPU hours unless stated otherwise.

    Attributes:
        total: of all jobs.
        wasted: by failed attempts and failed retries.
        failures: number of failed jobs.
        caught: number of failures that a check would have predicted.
        check, retry, both: saved by checks alone, by diagnosis-based retries alone, by both.
        given_up: number of jobs that are not retried although a retry would have succeeded.
        person: working hours of people who search for causes.
        person_diagnosis, person_all: working hours that diagnosis alone, and all tools, save.
    """

    total: float = 0.0
    wasted: float = 0.0
    failures: float = 0.0
    caught: float = 0.0
    check: float = 0.0
    retry: float = 0.0
    both: float = 0.0
    given_up: float = 0.0
    person: float = 0.0
    person_diagnosis: float = 0.0
    person_all: float = 0.0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A class of similar jobs.

    Attributes:
        share: of all jobs.
        hours: mean GPU hours of an attempt.
        fails: how it fails; "again" fails in every retry.
    """

    share: float
    hours: float
    fails: str


def _kinds(p: Values) -> list[_Kind]:
    failed, infrastructure = p["failed_share"], p["infrastructure_share"]
    hours = p["gpu_hours"] * p["failed_gpu_ratio"]
    # If one kind of failure does not occur, failures of the other kind take all the time.
    gpu_share = p["infrastructure_gpu_share"] if 0 < infrastructure < 1 else infrastructure
    of_infrastructure = hours * gpu_share / (infrastructure or 1.0)
    of_others = hours * (1 - gpu_share) / (1 - infrastructure or 1.0)
    kinds = [
        _Kind(1 - failed, p["gpu_hours"], ""),
        _Kind(failed * infrastructure, of_infrastructure, "once"),
    ]
    phases = zhang2020().phases.values()
    failures, gpu_time = (sum(phase[key] for phase in phases) for key in ("failures", "gpu_time"))
    for phase in phases:
        share = failed * (1 - infrastructure) * phase["failures"] / failures
        cost = of_others * (phase["gpu_time"] / gpu_time) / (phase["failures"] / failures)
        kinds.append(_Kind(share * p["transient_share"], cost, "once"))
        kinds.append(_Kind(share * (1 - p["transient_share"]), cost, "again"))
    return kinds


def simulated(p: Values, jobs: int, generator: np.random.Generator) -> Outcome:
    """Simulate every job of a fleet."""
    kinds = _kinds(p)
    counts = generator.multinomial(jobs, _normalized([kind.share for kind in kinds]))
    outcome = Outcome()
    for kind, count in zip(kinds, counts, strict=True):
        for start in range(0, int(count), _AT_ONCE):
            outcome += _simulated(p, kind, min(_AT_ONCE, int(count) - start), generator)
    return outcome


def _normalized(shares: list[float]) -> NDArray[np.float64]:
    array = np.clip(np.asarray(shares), 0.0, None)
    return np.asarray(array / array.sum())


def _simulated(p: Values, kind: _Kind, count: int, generator: np.random.Generator) -> Outcome:
    """Simulate jobs of one class; the caught ones are the first, since all are alike."""
    hours = _hours(kind.hours, p["spread"], count, generator)
    if not kind.fails:
        return Outcome(total=_sum(hours))
    allowed = int(p["retries"]) + (generator.random(count, np.float32) < p["retries"] % 1)
    caught = recovered = 0
    if kind.fails == "again":
        failed_retries = allowed
        caught = int(generator.binomial(count, _check_share(p)))
    else:
        # Number of failed retries before the first success.
        until = generator.geometric(max(p["retry_success"], 1e-9), count) - 1
        failed_retries = np.minimum(until, allowed)
        recovered = int((until < allowed).sum())
    retried = hours * failed_retries.astype(np.float32)
    useless = (_sum(retried), _sum(retried[:caught])) if kind.fails == "again" else (0.0, 0.0)
    return _outcome(p, count, caught, recovered, (_sum(hours), _sum(hours[:caught])), _sum(retried), useless)  # fmt: skip


def _hours(mean: float, spread: float, count: int, generator: np.random.Generator) -> Hours:
    if mean <= 0:
        return np.zeros(count, np.float32)
    normal = generator.standard_normal(count, np.float32)
    normal *= np.float32(spread)
    normal += np.float32(math.log(mean) - spread * spread / 2)
    return np.exp(normal, out=normal)


def _sum(hours: Hours) -> float:
    return float(hours.sum(dtype=np.float64))


def expected(p: Values, jobs: int) -> Outcome:
    """Return the exact expectation of `simulated`."""
    outcome = Outcome()
    for kind in _kinds(p):
        count = jobs * kind.share
        hours = count * kind.hours
        if not kind.fails:
            outcome += Outcome(total=hours)
        elif kind.fails == "again":
            share, retried = _check_share(p), hours * p["retries"]
            outcome += _outcome(p, count, count * share, 0, (hours, hours * share), retried, (retried, retried * share))  # fmt: skip
        else:
            failed, recovers = _expected_retries(p["retries"], p["retry_success"])
            outcome += _outcome(p, count, 0, count * recovers, (hours, 0.0), hours * failed, (0.0, 0.0))  # fmt: skip
    return outcome


def _expected_retries(retries: float, success: float) -> tuple[float, float]:
    """Return the expected number of failed retries and the probability of success, for a maximum number of retries."""
    fails = 1 - success
    whole, part = int(retries), retries % 1
    failed = sum(fails**n for n in range(1, whole + 1)) + part * fails ** (whole + 1)
    return failed, 1 - (1 - part) * fails**whole - part * fails ** (whole + 1)


def _check_share(p: Values) -> float:
    return p["adoption"] * p["field_share"] * p["check_recall"]


def _outcome(
    p: Values, count: float, caught: float, recovered: float, hours: tuple[float, float],
    retried: float, useless: tuple[float, float],
) -> Outcome:  # fmt: skip
    """Return the totals of failed jobs.

    Args:
        p: a value for each assumption.
        count, caught, recovered: numbers of jobs: all, those predicted by a check, those cured by a retry.
        hours: of first attempts; of the caught ones among them.
        retried: hours of failed retries.
        useless: hours of retries that could only fail; of caught jobs among them.
    """
    wasted = hours[0] + retried
    by_check = hours[1] + useless[1]
    avoided = p["adoption"] * p["retry_saved"]
    diagnosed = p["adoption"] * p["diagnosis_accuracy"] * p["diagnosis_time_saved"]
    return Outcome(
        total=wasted, wasted=wasted, failures=count, caught=caught, check=by_check,
        retry=avoided * useless[0], both=by_check + avoided * (useless[0] - useless[1]),
        given_up=recovered * p["adoption"] * p["retry_given_up"], person=count * p["person_hours"],
        person_diagnosis=count * p["person_hours"] * diagnosed,
        person_all=p["person_hours"] * (caught + (count - caught) * diagnosed),
    )  # fmt: skip
