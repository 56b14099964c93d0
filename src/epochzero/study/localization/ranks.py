"""Where a ranking has the files of a fix, and what the field measures of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TOPS = (1, 5, 10)
NOWHERE = 0
"""Rank of a file that a ranking does not give."""


class Ranked(NamedTuple):
    """Where a ranking has the files that a fix changed.

    Attributes:
        first: the rank of the first of them, from 1; `NOWHERE` where it gives none of them.
        last: the rank of the last.
        precision: the average precision: the mean over these files of the share of them among
            the files down to each (Manning et al., "Introduction to Information Retrieval", 2008,
            section 8.4). A file that is not given counts 0.
    """

    first: int
    last: int
    precision: float

    @property
    def reciprocal(self) -> float:
        """The reciprocal of the first rank, 0 where there is none."""
        return 1 / self.first if self.first else 0.0

    def within(self, top: int) -> bool:
        """Whether a file of the fix is among the first so many."""
        return 0 < self.first <= top


def ranked(scores: npt.NDArray[np.float32], wanted: Sequence[int]) -> Ranked:
    """What became of the files wanted; among equal scores the first path comes first.

    Args:
        scores: of all files, shape (files,).
        wanted: numbers of the files that the fix changed.
    """
    order = np.argsort(-scores, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(1, len(order) + 1)
    return _ranked([int(place[number]) for number in wanted], len(wanted))


def ranked_paths(paths: Sequence[str], wanted: Sequence[str]) -> Ranked:
    """What became of the files wanted in a ranking that may give some files only.

    Args:
        paths: the ranking, the most suspicious file first.
        wanted: paths of the files that the fix changed.
    """
    place = {path: at for at, path in reversed(list(enumerate(paths, 1)))}
    return _ranked([place[path] for path in wanted if path in place], len(wanted))


def _ranked(places: Sequence[int], wanted: int) -> Ranked:
    ranks = np.sort(np.array(places, np.int64))
    if not len(ranks):
        return Ranked(NOWHERE, NOWHERE, 0.0)
    precision = float(np.sum(np.arange(1, len(ranks) + 1) / ranks)) / wanted
    last = int(ranks[-1]) if len(ranks) == wanted else NOWHERE
    return Ranked(int(ranks[0]), last, precision)
