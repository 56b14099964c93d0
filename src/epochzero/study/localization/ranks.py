"""Ranks of the files of a fix, and the usual measures of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TOPS = (1, 5, 10)
NOWHERE = 0
"""Rank of a file that is not in a ranking."""


class Ranked(NamedTuple):
    """Ranks of the files that a fix changed.

    Attributes:
        first: smallest rank, from 1; `NOWHERE` if the ranking contains none of the files.
        last: largest rank.
        precision: average precision: the mean, over these files, of their share among the files down to each
            (Manning et al., "Introduction to Information Retrieval", 2008, section 8.4). A file that is not in the
            ranking counts 0.
    """

    first: int
    last: int
    precision: float

    @property
    def reciprocal(self) -> float:
        """Reciprocal of the first rank; 0 if there is none."""
        return 1 / self.first if self.first else 0.0

    def within(self, top: int) -> bool:
        """Whether a file of the fix is among the first ``top``."""
        return 0 < self.first <= top


def ranked(scores: npt.NDArray[np.float32], wanted: Sequence[int]) -> Ranked:
    """Return the ranks of the wanted files; equal scores are ordered by path.

    Args:
        scores: of all files, shape (files,).
        wanted: indices of the files that the fix changed.
    """
    order = np.argsort(-scores, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(1, len(order) + 1)
    return _ranked([int(place[number]) for number in wanted], len(wanted))


def ranked_paths(paths: Sequence[str], wanted: Sequence[str]) -> Ranked:
    """Return the ranks of the wanted files in a ranking that may be incomplete.

    Args:
        paths: the ranking, most suspicious file first.
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
