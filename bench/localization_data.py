"""What the localization benchmarks keep of a bug beside its ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from learning_to_rank import Example

__all__ = ["Measured", "knows_fix"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A bug with all that its tables need.

    Attributes:
        example: features and the files wanted.
        scores: of each technique.
        localized: the report names a file that the fix changed.
        knows_fix: the reporter shows a fix or announces a pull request.
        kind, extrinsic: the labels, where there are any.
        classes: of the project.
        files: paths of the files wanted.
        shared: the largest share of the report's different words that a wanted file holds.
        seconds: for the corpus, parsed files being kept, and for the features.
    """

    example: Example
    scores: Mapping[str, Floats]
    localized: bool
    knows_fix: bool
    kind: str
    extrinsic: bool | None
    classes: tuple[str, ...]
    files: tuple[str, ...]
    shared: float
    seconds: tuple[float, float]


_FIX_KNOWN = re.compile(
    r"\b(?:submit|open|creat|mak|send|sent|put in)(?:e|ed|ing|ting|ted)? (?:a|the) "
    r"(?:PR|pull ?request|patch)\b(?!\?)|proposed (?:fix|change|solution)|I (?:have |'ve )?fixed "
    r"(?:it|this)|\bth(?:is|e) (?:PR|pull request|patch) (?:fix|add|chang|resolv|make)",
    re.IGNORECASE,
)


def knows_fix(text: str) -> bool:
    """Whether a reporter shows a fix or announces a pull request, as far as the words tell: such a
    report may say where the bug is because the fix was written before it.
    """
    return bool(_FIX_KNOWN.search(text))
