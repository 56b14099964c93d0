"""Retry policies: TOML files with ordered rules; the first that fits a failure decides.

A rule says which failures it is for (``when``), how often such a failure may be retried, where,
after what time, and why. ``docs/retry.md`` describes the fields.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from epochzero import taxonomy
from epochzero.errors import CatalogError, suggestion

EVIDENCE = {
    "there_now": "what was missing exists now",
    "unseeded": "unseeded random numbers were drawn where it failed",
    "shared_storage": "its files are on a network file system",
    "local_files": "its files are on a local file system",
    "environment": "its message concerns something outside the job",
    "passed_before": "a retry of it has passed before",
    "never_passed": "three or more retries of it failed and none passed",
    "neighbours_failed": "another program failed because of the same resource at the same time",
    "many_neighbours_failed": "three or more other programs did",
    "completed_before": "the same program has completed before",
}
"""What can be known of a failed attempt in addition to its diagnosis, in the words of a decision's reason."""


@dataclass(frozen=True, slots=True)
class FailureCondition:
    """Which failures a rule is for: all that is given must hold; nothing given, all failures.

    Attributes:
        retry, category, dimension, phase: words of the taxonomy, one of which the failure has.
        basis: what the diagnosis rests on: signature, reading, classifier, exit, nothing.
        ended_by: what terminated the attempt: user, scheduler, hang, another_rank, ...
        progressed: whether the attempt got further than all before it.
        checkpoint: whether the attempt left a checkpoint.
        evidence: facts of `EVIDENCE` that must all be known for the attempt.
        seconds_at_most: how long the attempt ran.
        gpu_hours_at_most: what the attempt cost, which a retry costs again if it fails.
        confidence_at_least: of the diagnosis, 0 to 1.
        same_in_a_row_at_least: attempts in a row that ended with this failure, this one included.
    """

    retry: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    dimension: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    basis: tuple[str, ...] = ()
    ended_by: tuple[str, ...] = ()
    progressed: bool | None = None
    checkpoint: bool | None = None
    evidence: tuple[str, ...] = ()
    seconds_at_most: float = math.inf
    gpu_hours_at_most: float = math.inf
    confidence_at_least: float = 0.0
    same_in_a_row_at_least: int = 1


@dataclass(frozen=True, slots=True)
class RetryRule:
    """What is done about the failures that ``when`` is for.

    Attributes:
        title: what they are, in a few words.
        when: which they are.
        retries: how often one is retried at most; 0 stops at once.
        chance: that such a failure is transient, before evidence and failed retries are considered. A retry is made
            if it is expected to save more than it costs (`decide.Stakes`); None makes all retries.
        elsewhere: whether the retry should be on another node.
        wait: seconds before the first retry; each further one waits ``factor`` times as long.
        factor: see ``wait``.
        longest: most seconds that a retry waits.
        reason: why, in a sentence.
    """

    title: str
    when: FailureCondition
    retries: int
    reason: str
    chance: float | None = None
    elsewhere: bool = False
    wait: float = 0.0
    factor: float = 2.0
    longest: float = 900.0


@dataclass(frozen=True, slots=True)
class Policy:
    """When to start a failed job again.

    Attributes:
        name: of its file.
        title: what it does, in a sentence.
        source: where it comes from.
        budget: what a rule's retries are counted for: ``failure``, one fingerprint; or ``job``.
        reset_by_progress: whether retries that got further than all before cost nothing.
        most: retries of a job in all, whatever the rules say.
        passes: probability that a retry of a transient failure succeeds.
        worth_hours: hours until a person would restart the job.
        start_hours: hours from the start of a job that resumes to its first step, in which it holds its GPUs.
        evidence: by how much each fact of `EVIDENCE` changes the odds that a failure is transient, in rules that do not
            ask for it.
        rules: in order; the last is for all failures.
    """

    name: str
    title: str
    source: str
    budget: str
    reset_by_progress: bool
    most: int
    rules: tuple[RetryRule, ...] = field(repr=False)
    passes: float = 0.7
    worth_hours: float = 4.0
    start_hours: float = 0.1
    evidence: Mapping[str, float] = field(default_factory=dict)


def built_in() -> tuple[str, ...]:
    """Names of the policies that come with EpochZero."""
    return tuple(sorted(_shipped()))


def load_policy(name: str | Path) -> Policy:
    """A policy that comes with EpochZero, by name, or one's own, by the path of its file.

    Raises:
        CatalogError: there is none of this name, or the file is wrong: says where and how.
    """
    if isinstance(name, str) and name in _shipped():
        return _policy(name, f"policy {name}", _shipped()[name])
    path = Path(name)
    if isinstance(name, str) and not path.suffix:
        choices = f"choose one of {', '.join(built_in())}, or pass your own file NAME.toml"
        raise CatalogError(
            f"unknown retry policy {name!r}; {suggestion(name, built_in(), choices)}"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"{path} cannot be read: {error}") from error
    return _policy(path.stem, str(path), text)


@cache
def _shipped() -> Mapping[str, str]:
    folder = files("epochzero.run.retry") / "policies"
    return {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }


def _policy(name: str, where: str, text: str) -> Policy:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{where}: invalid TOML: {error}") from error
    rules = values.pop("rules", [])
    if not isinstance(rules, list) or not rules:
        raise CatalogError(f"{where} has no [[rules]]")
    head = {"source": "", "budget": "failure", "reset_by_progress": True, "most": 20} | values
    policy: Policy = _made(
        Policy,
        where,
        head | {"name": name, "rules": tuple(_rule(where, n, r) for n, r in enumerate(rules, 1))},
    )
    if policy.budget not in ("failure", "job"):
        raise CatalogError(f"{where}: budget must be failure or job, not {policy.budget!r}")
    if not (0 < policy.passes < 1 and policy.worth_hours >= 0 and policy.start_hours >= 0):
        raise CatalogError(
            f"{where}: passes must be between 0 and 1, worth_hours and start_hours at least 0"
        )
    _check_evidence(where, policy.evidence)
    if policy.rules[-1].when != FailureCondition():
        raise CatalogError(f"{where}: the last rule has a `when`, but must match all failures")
    return policy


def _rule(where: str, number: int, values: Any) -> RetryRule:
    where = f"{where}: rule {number}"
    if not isinstance(values, Mapping):
        raise CatalogError(f"{where} is not a table")
    when = values.get("when", {})
    if not isinstance(when, Mapping):
        raise CatalogError(f"{where}: when is not a table")
    lists = {key: tuple(v) if isinstance(v, list) else v for key, v in when.items()}
    rule: RetryRule = _made(
        RetryRule, where, dict(values) | {"when": _made(FailureCondition, f"{where}: when", lists)}
    )
    _check_words(where, rule.when)
    if rule.chance is not None and not 0 < rule.chance < 1:
        raise CatalogError(f"{where}: chance must be between 0 and 1, not {rule.chance}")
    if rule.retries < 0 or rule.wait < 0 or rule.longest < 0 or rule.factor < 1:
        raise CatalogError(
            f"{where}: retries, wait and longest must be at least 0, factor at least 1"
        )
    return rule


def _made(cls: type[Any], where: str, values: Mapping[str, Any]) -> Any:
    """An instance of a data class; its annotations say of what type each value must be."""
    types = {f.name: str(f.type) for f in fields(cls)}
    for key, value in values.items():
        if key not in types:
            raise CatalogError(f"{where}: unknown field {key!r}; choose one of {', '.join(types)}")
        if not _fits(value, types[key]):
            raise CatalogError(f"{where}: {key} = {value!r} is not of type {types[key]}")
    try:
        return cls(**values)
    except TypeError as error:
        raise CatalogError(f"{where}: {str(error).partition(') ')[2] or error}") from error


def _fits(value: Any, annotation: str) -> bool:
    if annotation == "tuple[str, ...]":
        return isinstance(value, tuple) and all(isinstance(word, str) for word in value)
    if annotation in ("float", "int"):
        numbers = (int, float) if annotation == "float" else (int,)
        return isinstance(value, numbers) and not isinstance(value, bool)
    if annotation == "float | None":
        return isinstance(value, float)
    simple = {"str": str, "bool": bool, "bool | None": bool, "Mapping[str, float]": Mapping}
    return annotation not in simple or isinstance(value, simple[annotation])


def _check_evidence(where: str, evidence: Mapping[str, Any]) -> None:
    for fact, factor in evidence.items():
        if fact not in EVIDENCE:
            raise CatalogError(
                f"{where}: unknown evidence {fact!r}; choose one of {', '.join(EVIDENCE)}"
            )
        if not _fits(factor, "float") or factor <= 0:
            raise CatalogError(f"{where}: evidence {fact} = {factor!r} is not a number above 0")


def _check_words(where: str, when: FailureCondition) -> None:
    for field_name, known in (
        ("evidence", EVIDENCE),
        ("retry", taxonomy.retries()),
        ("category", taxonomy.categories()),
        ("dimension", taxonomy.dimensions()),
        ("phase", taxonomy.phases()),
    ):
        for word in getattr(when, field_name):
            if word not in known:
                raise CatalogError(
                    f"{where}: {field_name} {word!r} is unknown; choose one of {', '.join(known)}"
                )
