"""What a tool says of a job, how well that tells its failure, and the numbers over many jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from check_jobs import CheckJob
from common import rate
from split import held

__all__ = ["PROGRAMS", "Outcome", "Said", "false_errors", "print_misses", "shares"]

PROGRAMS = 30
"""False errors are counted for so many good programs."""


@dataclass(frozen=True, slots=True)
class Said:
    """Something that a tool says of a job: an error, at a place, of a category if it knows any."""

    path: str
    line: int
    category: str
    text: str
    error: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one job: how well its failure was told, or how many errors are false."""

    job: CheckJob
    said: Sequence[Said]

    @property
    def told(self) -> str:
        """``predicted``, ``other_category`` (at the place), ``other_place`` or ``missed``."""
        if self._right:
            return "predicted"
        if any(self._at_place(one) for one in self.said):
            return "other_category"
        known = [one for one in self.said if one.error and one.category in self.job.categories]
        return "other_place" if known else "missed"

    @property
    def strictly(self) -> bool:
        """Whether the first category was reported at the first place.

        A command line has no lines. Where it is the first place, the first one with a line counts too.
        """
        category = self.job.categories[0]
        first, *others = self.job.places
        places = [first, *others[:1]] if first.path == "<command>" else [first]
        return any(
            one.error and one.category in ("", category) and place.near(one.path, one.line)
            for one in self.said
            for place in places
        )

    @property
    def false(self) -> list[Said]:
        """The errors, which in a good job are false."""
        return [one for one in self.said if one.error]

    @property
    def only_rule(self) -> str:
        """The rule without which the failure would not be predicted; empty if another one does it too."""
        rules = {one.text.partition(":")[0] for one in self._right}
        return rules.pop() if len(rules) == 1 else ""

    @property
    def _right(self) -> list[Said]:
        """What is said at the place, with a category of the failure where the tool knows any."""
        there = [one for one in self.said if self._at_place(one)]
        return [one for one in there if not one.category or one.category in self.job.categories]

    def _at_place(self, said: Said) -> bool:
        """Whether it is said at one of the places; of our own, errors only."""
        counts = said.error or not said.category
        return (
            counts
            and not said.text.startswith("cannot be checked")
            and any(place.near(said.path, said.line) for place in self.job.places)
        )


def shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How many failures were told, and how."""
    told = [outcome.told for outcome in outcomes]
    counts = {
        what: told.count(what) for what in ("predicted", "other_category", "other_place", "missed")
    }
    strict = sum(outcome.strictly for outcome in outcomes)
    share = rate(counts["predicted"], len(told))
    return {"n": len(told), **counts, "share": share, "strict": strict}


def false_errors(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """How many errors good jobs were given."""
    each = [len(outcome.false) for outcome in outcomes]
    wrong = sum(map(bool, each))
    per = rate(PROGRAMS * sum(each), len(each))
    return {"n": len(each), "errors": sum(each), "programs": wrong, f"errors_of_{PROGRAMS}": per}


def print_misses(outcomes: Iterable[Outcome]) -> None:
    """What was not told, and every false error, of the jobs that are not held out."""
    for outcome in outcomes:
        job = outcome.job
        if held(job.name):
            continue
        if job.good:
            wrong = outcome.false
            title = "false errors"
        elif outcome.told == "predicted":
            continue
        else:
            wrong = [one for one in outcome.said if one.error or not one.path.endswith(".py")]
            title = f"{outcome.told}; wanted {job.categories[0]} at {job.places[0]}"
        if wrong or not job.good:
            print(f"{job.name}: {title}")
            for one in wrong:
                print(f"    {one.path}:{one.line} {one.category} {one.text[:140]}")
