"""One decision: the attempts of a job so far and a policy, and what to do next."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from epochzero.diagnose import Diagnosis
from epochzero.diagnose.fingerprint import is_weak
from epochzero.run.records.model import Action, Decision
from epochzero.run.retry.history import NO_PRECEDENTS, Precedents
from epochzero.run.retry.policy import EVIDENCE, FailureCondition, Policy, RetryRule

BLIND_RETRIES = 3
"""What a platform does that does not look: the baseline for what a decision saves."""

_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """A failed attempt, as far as a policy looks at it.

    Attributes:
        fingerprint: identity of its failure.
        retry, category, dimension, phase, basis, confidence: as in its diagnosis.
        ended_by: what terminated it, if it did not exit by itself: user, scheduler, hang, ...
        progressed: whether it got further than all attempts before it.
        checkpoint: whether it left a checkpoint.
        evidence: what else is known of it, of `policy.EVIDENCE`.
        seconds: how long it ran.
        since_checkpoint: seconds since its last checkpoint; None for all that it ran.
        earlier: attempts of its job right before it that failed in the same way, as `Precedents.earlier`.
        gpus: how many GPUs it held.
        host: where it ran, or where its first failure was.
    """

    fingerprint: str
    retry: str = "unknown"
    category: str = ""
    dimension: str = ""
    phase: str = "unknown"
    basis: str = "nothing"
    confidence: float = 0.0
    ended_by: str = ""
    progressed: bool = False
    checkpoint: bool = False
    evidence: frozenset[str] = frozenset()
    seconds: float = 0.0
    since_checkpoint: float | None = None
    earlier: int = 0
    gpus: int = 0
    host: str = ""

    @classmethod
    def of(
        cls,
        diagnosis: Diagnosis,
        *,
        evidence: Iterable[str] = (),
        precedents: Precedents = NO_PRECEDENTS,
        host: str = "",
        **known: Any,
    ) -> PastAttempt:
        """The attempt with this diagnosis; ``known`` are its other attributes."""
        return cls(
            fingerprint=diagnosis.fingerprint,
            retry=diagnosis.retry,
            category=diagnosis.category,
            dimension=diagnosis.dimension,
            phase=diagnosis.phase,
            basis=diagnosis.basis,
            confidence=diagnosis.confidence,
            evidence=frozenset(evidence) | precedents.evidence,
            earlier=precedents.earlier,
            host=(diagnosis.root and diagnosis.root.host) or host,
            **known,
        )

    @property
    def weak(self) -> bool:
        """Whether its fingerprint does not identify its failure."""
        return is_weak(self.fingerprint)

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.seconds / 3600

    @property
    def lost_hours(self) -> float:
        """What is repeated by a retry: the hours since its last checkpoint, of all its GPUs."""
        return (self.seconds if self.since_checkpoint is None else self.since_checkpoint) / 3600


@dataclass(frozen=True, slots=True)
class Stakes:
    """What a retry is expected to save and to cost, in hours of the job.

    Attributes:
        passes: probability that the retry succeeds.
        saves: hours until a person would have restarted the job, times that probability.
        costs: hours that the retry takes until it fails again, times the probability that the failure is
            permanent. If it is transient, a person would have restarted the job too, so that a failed retry is no waste.
        odds: by how much each known fact of `EVIDENCE` changed the odds that the failure is transient.
    """

    passes: float
    saves: float
    costs: float
    odds: Mapping[str, float]


def decide(
    policy: Policy, attempts: Sequence[PastAttempt], *, time: float = 0.0, elapsed: float = 0.0
) -> Decision:
    """Whether a job is started again after the last of its attempts failed.

    The first rule that fits the last attempt decides. Its retries are counted back from the last
    attempt: those of the same failure, or all, as the policy's budget says, up to the last one that
    made progress if that resets it.

    Args:
        policy: see `load_policy`.
        attempts: all failed attempts of the job, in order; at least one.
        time, elapsed: when the decision is made (`epochzero.run.records.model`).
    """
    last = attempts[-1]
    rule = next(rule for rule in policy.rules if _fits(rule.when, attempts))
    used = _used(policy, attempts)
    if rule.chance is not None and not last.progressed:
        used = max(used, last.earlier)  # Of a job that its scheduler started again.
    made = len(attempts) - 1
    stakes = None if rule.chance is None else _stakes(policy, rule, last, used)
    if rule.retries == 0:
        action, reason = _stop(rule.reason)
    elif used >= rule.retries:
        of_this = "of this failure" if policy.budget == "failure" else "of the job"
        action, reason = _stop(f"{rule.reason} {_times(used)} {of_this} did not help.")
    elif made >= policy.most:
        action, reason = _stop(f"The job was restarted {made} times, the maximum.")
    elif stakes is not None and stakes.saves <= stakes.costs:
        action, reason = _stop(f"{rule.reason} {_described(stakes, last.gpus)}")
    else:
        # Storage that failed for other jobs too fails on each node.
        of_node = "neighbours_failed" in last.evidence and "shared_storage" not in last.evidence
        elsewhere = rule.elsewhere or (rule.chance and of_node)
        action = "retry_elsewhere" if elsewhere else "retry"
        expected = f" {_described(stakes, last.gpus)}" if stakes is not None else ""
        reason = f"{rule.reason}{expected} Retry {used + 1} of {rule.retries}."
    stops = action == "stop"
    return Decision(
        time=time,
        elapsed=elapsed,
        action=action,
        after=0.0 if stops else _wait(rule, used, last.fingerprint),
        reason=reason,
        policy=policy.name,
        avoid=_avoid(attempts) if action == "retry_elsewhere" else (),
        saved_gpu_hours=max(0, BLIND_RETRIES - made) * last.gpu_hours if stops else 0.0,
        risked_gpu_hours=0.0 if stops else last.gpus * last.lost_hours,
        evidence=stakes.odds if stakes is not None else {},
    )


def _stakes(policy: Policy, rule: RetryRule, last: PastAttempt, used: int) -> Stakes:
    """Bayes: each known fact and each retry that failed changes the odds that the failure is transient."""
    assert rule.chance is not None
    counted = last.evidence.difference(rule.when.evidence)  # Its chance contains those.
    changes = {fact: policy.evidence[fact] for fact in policy.evidence if fact in counted}
    odds = (
        rule.chance / (1 - rule.chance) * (1 - policy.passes) ** used * math.prod(changes.values())
    )
    chance = odds / (1 + odds)
    wait = _wait(rule, used, last.fingerprint) / 3600
    # From the beginning again, a retry fails after as long as the attempt did, its start included.
    resumed = math.inf if last.since_checkpoint is None else policy.start_hours + last.lost_hours
    return Stakes(
        chance * policy.passes,
        saves=chance * policy.passes * policy.worth_hours,
        costs=(1 - chance) * (wait + min(last.seconds / 3600, resumed)),
        odds=changes,
    )


def _described(stakes: Stakes, gpus: int) -> str:
    unit = "GPU hours" if gpus else "hours"
    saves, costs = (max(1, gpus) * hours for hours in (stakes.saves, stakes.costs))
    changes = (
        f"{'more' if factor > 1 else 'less'} likely because {EVIDENCE[fact]}"
        for fact, factor in stakes.odds.items()
    )
    because = f" ({'; '.join(changes)})" if stakes.odds else ""
    return (
        f"A retry has a {stakes.passes:.0%} chance to succeed{because}: on average it saves {saves:.2g} {unit} of"
        f" waiting for a person and wastes {costs:.2g}."
    )


def _stop(reason: str) -> tuple[Action, str]:
    return "stop", reason


def _times(count: int) -> str:
    return "One retry" if count == 1 else f"{count} retries"


def _fits(when: FailureCondition, attempts: Sequence[PastAttempt]) -> bool:
    last = attempts[-1]
    if last.confidence < when.confidence_at_least:
        return False
    if last.seconds > when.seconds_at_most or last.gpu_hours > when.gpu_hours_at_most:
        return False
    if _same_in_a_row(attempts) < when.same_in_a_row_at_least:
        return False
    for f in fields(PastAttempt):
        wanted = getattr(when, f.name, None)
        value = getattr(last, f.name)
        if isinstance(value, frozenset):
            if not value.issuperset(wanted or ()):
                return False
        elif isinstance(wanted, tuple) and wanted and value not in wanted:
            return False
        if isinstance(wanted, bool) and value is not wanted:
            return False
    return True


def _same_in_a_row(attempts: Sequence[PastAttempt]) -> int:
    if attempts[-1].weak:
        return 1  # that two processes ended without a message does not make it one failure
    count = 0
    for attempt in reversed(attempts):
        if attempt.fingerprint != attempts[-1].fingerprint:
            break
        count += 1
    return count


def _used(policy: Policy, attempts: Sequence[PastAttempt]) -> int:
    """Retries that count against the budget: attempts after which the same was tried before.

    An attempt that ended without a message may have failed in any way, so it counts in every case.
    """
    used = 0
    *earlier, last = attempts
    if policy.reset_by_progress and last.progressed:
        return 0
    for attempt in reversed(earlier):
        unknown = attempt.weak or last.weak
        if policy.budget == "job" or unknown or attempt.fingerprint == last.fingerprint:
            used += 1
        if policy.reset_by_progress and attempt.progressed:
            break
    return used


def _wait(rule: RetryRule, used: int, fingerprint: str) -> float:
    """Seconds, with a spread so that many jobs of one outage do not come back at once.

    The spread is the failure's own and not drawn: the same history gives the same decision.
    """
    spread = 1 + _JITTER * (zlib.crc32(fingerprint.encode()) / 0xFFFFFFFF - 0.5)
    return round(min(rule.wait * rule.factor ** min(used, 64), rule.longest) * spread, 1)


def _avoid(attempts: Sequence[PastAttempt]) -> tuple[str, ...]:
    """Where this failure was seen; of one that cannot be recognised, where it was seen last."""
    if attempts[-1].weak:
        return tuple(filter(None, (attempts[-1].host,)))
    return tuple(
        dict.fromkeys(
            attempt.host
            for attempt in attempts
            if attempt.host and attempt.fingerprint == attempts[-1].fingerprint
        )
    )
