"""How often a root like this one was right: what the strength of its signs was worth in the lab.

``calibration.json`` is counted by ``bench/train_watch_confidence.py`` over trainings that are not held out. A
kind of fault of which the lab has few is reported as all kinds are at its strength; each of its own moves that: the
mean of a Beta distribution whose prior is the curve of all. Searches were mended on those trainings, and are better
there than elsewhere: the discount is what was left of it when new ones were looked at for the first time.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

PRIOR = 4.0
"""How many trainings the curve of all kinds counts for."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was counted.

    Attributes:
        curve: (strength, share of right ones), both rising: the share of all kinds from this strength on.
        words: of each kind of fault that was ever a root, how many were right, and how many there were.
        discount: what of that is left in trainings that are new, at most 1.
    """

    curve: tuple[tuple[float, float], ...]
    words: Mapping[str, tuple[int, int]]
    discount: float = 1.0

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Calibration:
        """From its JSON form."""
        curve = tuple((float(strength), float(share)) for strength, share in stored["curve"])
        words = {word: (int(right), int(count)) for word, (right, count) in stored["words"].items()}
        return cls(curve, words, float(stored["discount"]))

    def of_all(self, strength: float) -> float:
        """The share of right ones among roots of all kinds of about this strength."""
        at = bisect_right(self.curve, (strength, 1.0)) - 1
        return self.curve[max(at, 0)][1]

    def confidence(self, word: str, strength: float) -> float:
        """The share of right ones to be expected, 0 to 1.

        Args:
            word: of the fault.
            strength: of its signs, as its search gives it.
        """
        right, count = self.words.get(word, (0, 0))
        return self.discount * (PRIOR * self.of_all(strength) + right) / (PRIOR + count)


@cache
def calibration() -> Calibration:
    """That of the lab."""
    stored = files(__package__ or "").joinpath("calibration.json").read_text(encoding="utf-8")
    return Calibration.of(json.loads(stored))
