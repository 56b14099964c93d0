"""The budget and the archive of instances, which all searches share; the exhaustive and the random search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.classifier import ProgressCallback
from epochzero_models.fairness.subject import Judged, Subject

SEEDS = 1000
"""Batch size of random search."""
ROUND = 10_000
"""Batch size of an exhaustive search."""
FINER = 1.02
"""The progress of a search is recorded each time that this fraction of time has been added."""


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Limits of a search, which ends at the first one that is reached.

    Attributes:
        seconds: by the clock.
        inputs: checked inputs.
        instances: found instances.
        clock: measures the seconds; processor time is fairer on a busy machine.
    """

    seconds: float | None = None
    inputs: int | None = None
    instances: int | None = None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        """Reject a budget that may never end.

        Raises:
            InputError: neither seconds nor inputs are given; a fair model would be searched forever.
        """
        if self.seconds is None and self.inputs is None:
            raise InputError("a search requires a budget in seconds or inputs")


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The result of a search.

    Attributes:
        search: its name.
        checked: number of checked inputs, including repetitions.
        levels: the discriminatory instances, all different apart from protected attributes; shape
            (found, attributes).
        partners: for each, the variant with another class, same shape.
        outputs, others: the classes of both, shape (found,).
        seconds: duration.
        course: seconds and number of instances at several times.
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
class InputCheck:
    """The result of checking inputs.

    Attributes:
        discriminates: shape (n,).
        partner: variants with another class, otherwise those that differ most; shape (n, attributes).
        new: whether it discriminates and was unknown, shape (n,).
    """

    discriminates: Tensor
    partner: Tensor
    new: Tensor


class Archive:
    """Checks inputs for a search within its budget, and stores discriminatory ones."""

    def __init__(
        self,
        search: str,
        subject: Subject,
        budget: SearchBudget,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.search, self.subject, self.budget, self.on_progress = (
            search,
            subject,
            budget,
            on_progress,
        )
        self.checked = 0
        self._seen: set[int] = set()
        self._parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._course: list[tuple[float, int]] = []
        self._reported_at = 0.0
        self._began = budget.clock()
        # A random multiplier per unprotected attribute hashes a vector to 64 bits.
        random = torch.Generator().manual_seed(0)
        width = len(subject.domain.attributes)
        self._multipliers = torch.randint(-(2**62), 2**62, (width,), generator=random)
        self._multipliers[list(subject.domain.protected)] = 0

    @property
    def over(self) -> bool:
        """Whether the budget is exhausted."""
        budget = self.budget
        return (
            (budget.inputs is not None and self.checked >= budget.inputs)
            or (budget.instances is not None and len(self._seen) >= budget.instances)
            or (budget.seconds is not None and self._elapsed() >= budget.seconds)
        )

    def __len__(self) -> int:
        """Return the number of instances found so far."""
        return len(self._seen)

    def check(self, levels: Tensor, likely: Tensor | None = None) -> InputCheck:
        """Check inputs, shape (n, attributes), and store new instances.

        Args:
            levels: the inputs.
            likely: variants of them that probably get another class, evaluated first.
        """
        judged = self.subject.judge(levels, likely)
        self.checked += len(levels)
        new = self._add(levels, judged)
        self._report()
        return InputCheck(judged.discriminates, judged.partner, new)

    def follow(self, levels: Tensor, partners: Tensor) -> InputCheck:
        """Check inputs for a walk: known instances are not evaluated again.

        Args:
            levels: positions of the walk, shape (n, attributes).
            partners: variants with another class at the previous positions; returned for known inputs.
        """
        known = torch.tensor([key in self._seen for key in self._keys(levels)])
        discriminates, partner, new = known.clone(), partners.clone(), torch.zeros_like(known)
        asked = ~known
        if asked.any():
            found = self.check(levels[asked], partners[asked])
            discriminates[asked], partner[asked] = found.discriminates, found.partner
            new[asked] = found.new
        self.checked += int(known.sum())
        return InputCheck(discriminates, partner, new)

    def found(self) -> SearchOutcome:
        """Return what was found so far."""
        elapsed = self._elapsed()
        width = len(self.subject.domain.attributes)
        none = torch.empty(0, width, dtype=torch.int64)
        parts = [torch.cat(group) for group in zip(*self._parts, strict=True)] or [
            none, none, none[:, 0], none[:, 0]
        ]  # fmt: skip
        most = self.budget.instances
        levels, partners, outputs, others = (part[:most].long() for part in parts)
        course = (*self._course, (elapsed, len(self._seen)))
        return SearchOutcome(
            self.search, self.checked, levels, partners, outputs, others, elapsed, course
        )

    def _add(self, levels: Tensor, judged: Judged) -> Tensor:
        """Store unknown instances; return which ones they are."""
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
        if self.on_progress and elapsed > self._reported_at + 0.05:
            self._reported_at = elapsed
            self.on_progress(
                f"{self.search}: inputs checked", self.checked, self.budget.inputs or 0
            )

    def _elapsed(self) -> float:
        return self.budget.clock() - self._began


def exhaustive(archive: Archive) -> None:
    """Check each input of the domain once, until the budget is exhausted."""
    domain = archive.subject.domain
    for start in range(0, domain.size, ROUND):
        if archive.over:
            return
        archive.check(domain.numbered(start, min(domain.size, start + ROUND)))


def chance(archive: Archive, draw: torch.Generator) -> Iterator[tuple[Tensor, InputCheck]]:
    """Check inputs drawn uniformly from the domain, in batches, until the budget is exhausted.

    If one variant often gets another class, it is evaluated first.
    """
    domain = archive.subject.domain
    variants = len(domain.variants)
    first: int | None = None
    while not archive.over:
        levels = domain.drawn(SEEDS, draw)
        likely = None if first is None else domain.with_variant(levels, torch.tensor(first))
        checked = archive.check(levels, likely)
        partners = domain.variant_of(checked.partner[checked.discriminates])
        counts = torch.bincount(partners, minlength=variants)
        # An input costs `variants` evaluations, or two, and the others only if the first variant did not suffice.
        first = int(counts.argmax()) if int(counts.max()) * variants > 2 * SEEDS else None
        yield levels, checked


def random_search(archive: Archive, draw: torch.Generator) -> None:
    """Check inputs drawn uniformly from the domain until the budget is exhausted."""
    for _ in chance(archive, draw):
        pass
