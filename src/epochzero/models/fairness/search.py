"""What all searches share: their budget, what they have found, and the walk around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero.models.classifier import Tell
from epochzero.models.fairness.subject import Judged, Subject

__all__ = ["SEEDS", "TRIALS", "Archive", "Budget", "Found", "random_search", "walk"]

SEEDS = 1000
"""Inputs with which a round of a search begins, as in both papers."""
TRIALS = 1000
"""Steps of the local search from each instance, as in both papers."""


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
            raise InputError("a search needs a budget of seconds or of inputs")


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

    def check(self, levels: Tensor) -> Judged:
        """What the model says of inputs, shape (n, attributes); new instances are kept."""
        judged = self.subject.judge(levels)
        self.checked += len(levels)
        at = judged.discriminates.nonzero()[:, 0]
        new = self._new(levels[at])
        if new:
            at = at[torch.tensor(new)]
            self._parts.append(
                (
                    levels[at].short(),
                    judged.partner[at].short(),
                    judged.output[at],
                    judged.other[at],
                )
            )
        if not self._course or self._elapsed() - self._course[-1][0] > 0.05:
            self._course.append((self._elapsed(), len(self._seen)))
            if self.tell:
                self.tell(
                    f"{self.search}: {len(self._seen):,} instances among {self.checked:,} inputs"
                )
        return judged

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

    def _new(self, levels: Tensor) -> list[int]:
        keys = (levels * self._multipliers).sum(dim=1).tolist()
        new: list[int] = []
        for at, key in enumerate(keys):
            if key not in self._seen:
                self._seen.add(key)
                new.append(at)
        return new

    def _elapsed(self) -> float:
        return self.budget.clock() - self._began


def random_search(archive: Archive, draw: torch.Generator, seeds: int = SEEDS) -> None:
    """Inputs drawn evenly from the domain, until the budget is spent."""
    while not archive.over:
        archive.check(archive.subject.domain.drawn(seeds, draw))


Propose = Callable[[Tensor, Tensor, int], Tensor]
"""Inputs, their partners and the number of the trial -> the inputs, each a step further."""
Learn = Callable[[Tensor, Judged], None]
"""Hears what was proposed and what the model said of it."""


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
    for trial in range(TRIALS if len(levels) else 0):
        if archive.over:
            return
        moved = propose(levels, partners, trial)
        judged = archive.check(moved)
        if learn:
            learn(moved - levels, judged)
        stays = judged.discriminates[:, None]
        levels = torch.where(stays, moved, levels)
        partners = torch.where(stays, judged.partner, partners)
