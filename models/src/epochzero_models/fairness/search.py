"""What all searches share: their budget, what they have found, and the walk around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.classifier import Tell
from epochzero_models.fairness.subject import Judged, Subject

SEEDS = 1000
"""Inputs with which a round of a search begins, as in both papers."""
TRIALS = 1000
"""Steps of the local search from each instance, as in both papers."""
WALKERS = 1000
"""So many instances are gathered for a walk, or those of `ROUNDS` rounds."""
ROUNDS = 10
ROUND = 10_000
"""Inputs of an exhaustive search that are checked at a time."""
FINER = 1.02
"""The course of a search is noted each time that so much more time has passed."""

Instances = tuple[Tensor, Tensor]
"""Levels and those of their partners, shape (n, attributes) each."""
Propose = Callable[[Tensor, Tensor, int], Tensor]
"""Inputs, their partners and the number of the trial -> the inputs, each a step further."""
Learn = Callable[[Tensor, Tensor], None]
"""Hears the steps that were proposed, shape (n, attributes), and whether each led to discrimination."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When a search ends: at the first of these that is reached.

    Attributes:
        seconds: by the clock.
        inputs: that are checked.
        instances: that are found.
        clock: what counts the seconds; processor time is fairer on a busy machine.
    """

    seconds: float | None = None
    inputs: int | None = None
    instances: int | None = None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        """Refuses a budget that never ends.

        Raises:
            InputError: neither seconds nor inputs are given, and a fair model would be searched for ever.
        """
        if self.seconds is None and self.inputs is None:
            raise InputError("a search requires a budget in seconds or inputs")


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        search: its name.
        checked: inputs that it checked, repeats among them.
        levels: the discriminatory instances, no two of them alike without their protected attributes; shape
            (found, attributes).
        partners: the variant of each that gets another class, the same shape.
        outputs, others: the classes of both, shape (found,).
        seconds: that it took.
        course: seconds and instances found by then, as it went on.
    """

    search: str
    checked: int
    levels: Tensor
    partners: Tensor
    outputs: Tensor
    others: Tensor
    seconds: float
    course: tuple[tuple[float, int], ...]

    def __len__(self) -> int:
        return len(self.levels)


@dataclass(frozen=True, eq=False)
class CheckResult:
    """What a search learns of the inputs that it had checked.

    Attributes:
        discriminates: shape (n,).
        partner: variants with another class, or else those that differ most; shape (n, attributes).
        new: whether it discriminates and was not known before, shape (n,).
    """

    discriminates: Tensor
    partner: Tensor
    new: Tensor


class Archive:
    """Checks inputs for a search, within its budget, and keeps what discriminates."""

    def __init__(
        self, search: str, subject: Subject, budget: Budget, tell: Tell | None = None
    ) -> None:
        self.search, self.subject, self.budget, self.tell = search, subject, budget, tell
        self.checked = 0
        self._seen: set[int] = set()
        self._parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._course: list[tuple[float, int]] = []
        self._told = 0.0
        self._began = budget.clock()
        # A random multiplier for each attribute that is not protected makes a number of 64 bits of a vector.
        random = torch.Generator().manual_seed(0)
        width = len(subject.domain.attributes)
        self._multipliers = torch.randint(-(2**62), 2**62, (width,), generator=random)
        self._multipliers[list(subject.domain.protected)] = 0

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        budget = self.budget
        return (
            (budget.inputs is not None and self.checked >= budget.inputs)
            or (budget.instances is not None and len(self._seen) >= budget.instances)
            or (budget.seconds is not None and self._elapsed() >= budget.seconds)
        )

    def __len__(self) -> int:
        """How many instances were found until now."""
        return len(self._seen)

    def check(self, levels: Tensor, likely: Tensor | None = None) -> CheckResult:
        """Asks the model about inputs, shape (n, attributes), and keeps new instances.

        Args:
            levels: the inputs.
            likely: variants of them that probably get another class, and are asked about first.
        """
        judged = self.subject.judge(levels, likely)
        self.checked += len(levels)
        new = self._kept(levels, judged)
        self._report()
        return CheckResult(judged.discriminates, judged.partner, new)

    def follow(self, levels: Tensor, partners: Tensor) -> CheckResult:
        """As `check`, for a walk: what is known to discriminate is not asked about again.

        Args:
            levels: where the walk is, shape (n, attributes).
            partners: variants that got another class where it was before; those of the known inputs are given back.
        """
        known = torch.tensor([key in self._seen for key in self._keys(levels)])
        discriminates, partner, new = known.clone(), partners.clone(), torch.zeros_like(known)
        asked = ~known
        if asked.any():
            found = self.check(levels[asked], partners[asked])
            discriminates[asked], partner[asked] = found.discriminates, found.partner
            new[asked] = found.new
        self.checked += int(known.sum())
        return CheckResult(discriminates, partner, new)

    def found(self) -> Found:
        """What was found until now."""
        elapsed = self._elapsed()
        width = len(self.subject.domain.attributes)
        none = torch.empty(0, width, dtype=torch.int64)
        parts = [torch.cat(one) for one in zip(*self._parts, strict=True)] or [
            none, none, none[:, 0], none[:, 0]
        ]  # fmt: skip
        most = self.budget.instances
        levels, partners, outputs, others = (one[:most].long() for one in parts)
        course = (*self._course, (elapsed, len(self._seen)))
        return Found(self.search, self.checked, levels, partners, outputs, others, elapsed, course)

    def _kept(self, levels: Tensor, judged: Judged) -> Tensor:
        """Which are instances that were not known; those are kept."""
        at = judged.discriminates.nonzero()[:, 0]
        first: list[bool] = []
        for key in self._keys(levels[at]):
            first.append(key not in self._seen)
            self._seen.add(key)
        at = at[torch.tensor(first, dtype=torch.bool)]
        if len(at):
            self._parts.append((
                levels[at].short(), judged.partner[at].short(), judged.output[at], judged.other[at],
            ))  # fmt: skip
        new = torch.zeros_like(judged.discriminates)
        new[at] = True
        return new

    def _keys(self, levels: Tensor) -> list[int]:
        return (levels * self._multipliers).sum(dim=1).tolist()

    def _report(self) -> None:
        elapsed = self._elapsed()
        if not self._course or elapsed > FINER * self._course[-1][0]:
            self._course.append((elapsed, len(self)))
        if self.tell and elapsed > self._told + 0.05:
            self._told = elapsed
            self.tell(f"{self.search}: {len(self):,} instances among {self.checked:,} inputs")

    def _elapsed(self) -> float:
        return self.budget.clock() - self._began


def exhaustive(archive: Archive) -> None:
    """Each input of the domain once, until the budget is spent."""
    domain = archive.subject.domain
    for start in range(0, domain.size, ROUND):
        if archive.over:
            return
        archive.check(domain.numbered(start, min(domain.size, start + ROUND)))


def chance(
    archive: Archive, draw: torch.Generator, seeds: int
) -> Iterator[tuple[Tensor, CheckResult]]:
    """Inputs drawn evenly from the domain, some at a time, and what is learned of them; until the budget is spent.

    Where one variant is judged otherwise than many inputs, it is asked about first.
    """
    domain = archive.subject.domain
    variants = len(domain.variants)
    first: int | None = None
    while not archive.over:
        levels = domain.drawn(seeds, draw)
        likely = None if first is None else domain.with_variant(levels, torch.tensor(first))
        checked = archive.check(levels, likely)
        partners = domain.variant_of(checked.partner[checked.discriminates])
        counts = torch.bincount(partners, minlength=variants)
        # An input costs `variants` questions, or two more and those only where the first variant was of no use.
        first = int(counts.argmax()) if int(counts.max()) * variants > 2 * seeds else None
        yield levels, checked


def random_search(archive: Archive, draw: torch.Generator, seeds: int = SEEDS) -> None:
    """Inputs drawn evenly from the domain, until the budget is spent."""
    for _ in chance(archive, draw, seeds):
        pass


def gathered(rounds: Iterable[Instances]) -> Iterator[Instances]:
    """Instances of several rounds together: a walk from few of them takes almost as long as one from many."""
    waiting: list[Instances] = []
    for one in rounds:
        waiting.append(one)
        if len(waiting) == ROUNDS or sum(len(levels) for levels, _ in waiting) >= WALKERS:
            levels, partners = zip(*waiting, strict=True)
            yield torch.cat(levels), torch.cat(partners)
            waiting = []


def walk(
    archive: Archive, levels: Tensor, partners: Tensor, propose: Propose, learn: Learn | None = None
) -> None:
    """The local search: steps from each instance; one that leads out of discrimination is taken back.

    Args:
        archive: checks and keeps.
        levels, partners: instances and the variants that differ from them, shape (n, attributes).
        propose: the next step.
        learn: hears how it went.
    """
    domain = archive.subject.domain
    for trial in range(TRIALS if len(levels) else 0):
        if archive.over:
            return
        moved = propose(levels, partners, trial)
        checked = archive.follow(moved, domain.with_variant(moved, domain.variant_of(partners)))
        if learn:
            learn(moved - levels, checked.discriminates)
        stays = checked.discriminates[:, None]
        levels = torch.where(stays, moved, levels)
        partners = torch.where(stays, checked.partner, partners)
