"""One decision: the attempts of a job so far and a policy, and what to do next."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

from epochzero.diagnose import Diagnosis
from epochzero.diagnose.fingerprint import is_weak
from epochzero.run.model import Action, Decision
from epochzero.run.retry.history import NO_PRECEDENTS, Precedents
from epochzero.run.retry.policy import Policy, RetryRule, When

BLIND_RETRIES = 3
"""What a platform does that does not look: the baseline for what a decision saves."""

_JITTER = 0.2
_MANY_RETRIES = 3


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """A failed attempt, as far as a policy looks at it.

    Attributes:
        fingerprint: identity of its failure.
        retry, category, dimension, phase, basis, confidence: as in its diagnosis.
        ended_by: who ended it, where not the job itself: user, scheduler, stall, ...
        progressed: whether it got further than all attempts before it.
        checkpoint: whether it left a checkpoint.
        there_now: whether what it missed is there now (`there_now`).
        unseeded: whether numbers that nothing seeds were drawn where it failed (`unseeded`).
        shared_storage: whether its files are on a network file system (`shared_storage`).
        environment: whether its failure is about something outside of the job that may pass (`subject`).
        passed_before, never_passed, neighbours_failed, completed_before: what the history knows
            about it (`Precedents`).
        seconds: how long it ran.
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
    there_now: bool = False
    unseeded: bool = False
    shared_storage: bool = False
    environment: bool = False
    passed_before: bool = False
    never_passed: bool = False
    neighbours_failed: bool = False
    completed_before: bool = False
    seconds: float = 0.0
    gpus: int = 0
    host: str = ""

    @classmethod
    def of(
        cls,
        diagnosis: Diagnosis,
        *,
        ended_by: str = "",
        progressed: bool = False,
        checkpoint: bool = False,
        there_now: bool = False,
        unseeded: bool = False,
        shared_storage: bool = False,
        environment: bool = False,
        precedents: Precedents = NO_PRECEDENTS,
        seconds: float = 0.0,
        gpus: int = 0,
        host: str = "",
    ) -> PastAttempt:
        """The attempt that a diagnosis is of."""
        return cls(
            fingerprint=diagnosis.fingerprint,
            retry=diagnosis.retry,
            category=diagnosis.category,
            dimension=diagnosis.dimension,
            phase=diagnosis.phase,
            basis=diagnosis.basis,
            confidence=diagnosis.confidence,
            ended_by=ended_by,
            progressed=progressed,
            checkpoint=checkpoint,
            there_now=there_now,
            unseeded=unseeded,
            shared_storage=shared_storage,
            environment=environment,
            passed_before=precedents.passed > 0,
            never_passed=precedents.passed == 0 and precedents.repeated >= _MANY_RETRIES,
            neighbours_failed=precedents.neighbours > 0,
            completed_before=precedents.completed,
            seconds=seconds,
            gpus=gpus,
            host=(diagnosis.root and diagnosis.root.host) or host,
        )

    @property
    def weak(self) -> bool:
        """Whether its fingerprint does not identify its failure."""
        return is_weak(self.fingerprint)

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.seconds / 3600


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
        time, elapsed: when the decision is made (`epochzero.run.model`).
    """
    last = attempts[-1]
    rule = next(rule for rule in policy.rules if _fits(rule.when, attempts))
    used = _used(policy, attempts)
    made = len(attempts) - 1
    if rule.retries == 0:
        action, reason = _stop(rule.reason)
    elif used >= rule.retries:
        of_this = "of this failure" if policy.budget == "failure" else "of the job"
        action, reason = _stop(f"{rule.reason} {_times(used)} {of_this} did not help.")
    elif made >= policy.most:
        action, reason = _stop(f"The job was restarted {made} times, the maximum.")
    else:
        action = "retry_elsewhere" if rule.elsewhere else "retry"
        reason = f"{rule.reason} Retry {used + 1} of {rule.retries}."
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
        risked_gpu_hours=0.0 if stops else last.gpu_hours,
    )


def _stop(reason: str) -> tuple[Action, str]:
    return "stop", reason


def _times(count: int) -> str:
    return "One retry" if count == 1 else f"{count} retries"


def _fits(when: When, attempts: Sequence[PastAttempt]) -> bool:
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
        if isinstance(wanted, tuple) and wanted and value not in wanted:
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
