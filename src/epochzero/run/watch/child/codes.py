"""Compares predictions and targets of an evaluation: whether they would agree with other codes."""

from __future__ import annotations

from typing import Any

import torch

MOST_KINDS = 32
_MOST = 4096
"""Predictions of a batch that are read."""


class Codes:
    """Counts which predictions meet which targets; holds no tensor of the job."""

    def __init__(self) -> None:
        self._counts: dict[str, torch.Tensor] = {}
        self._sums: torch.Tensor | None = None

    def add_classes(self, name: str, predicted: torch.Tensor, target: torch.Tensor) -> None:
        """Count the classes of a batch, separately for those of a loss and those that the program compares."""
        left, right = (t.detach().reshape(-1)[:_MOST].long() for t in (predicted, target))
        valid = (left >= 0) & (left < MOST_KINDS) & (right >= 0) & (right < MOST_KINDS)
        at = torch.where(valid, left * MOST_KINDS + right, 0)
        counts = self._counts.setdefault(name, torch.zeros(MOST_KINDS**2, device=at.device))
        counts.scatter_add_(0, at, valid.float())

    def add_numbers(self, predicted: torch.Tensor, target: torch.Tensor) -> None:
        """Add the numbers of a batch."""
        # MPS has no double precision.
        kind = torch.float32 if predicted.device.type == "mps" else torch.float64
        p, t = (x.detach().reshape(-1)[:_MOST].to(kind) for x in (predicted, target))
        sums = torch.stack([torch.ones_like(p).sum(), p.sum(), t.sum(), p @ p, t @ t, p @ t])
        self._sums = sums if self._sums is None else self._sums + sums

    def found(self) -> dict[str, Any]:
        """Return what was counted: ``classes`` and ``numbers``, each only if it was counted."""
        found: dict[str, Any] = {}
        if self._counts:
            counts = self._counts.get("loss", next(iter(self._counts.values())))
            found["classes"] = _classes(counts.view(MOST_KINDS, MOST_KINDS))
        if self._sums is not None:
            found["numbers"] = _numbers(*self._sums.tolist())
        return {name: of for name, of in found.items() if of}


def _classes(counts: torch.Tensor) -> dict[str, float]:
    """Return the share of predictions that agree, and the share that would agree if each class were renamed to its most frequent partner."""
    rows = [row for row in counts.tolist() if any(row)]
    total = sum(map(sum, rows))
    partners = {row.index(max(row)) for row in rows}
    if len(rows) < 2 or len(partners) < len(rows):
        return {}
    agree = sum(row[at] for at, row in enumerate(counts.tolist()))
    return {"count": total, "agree": agree / total, "renamed": sum(map(max, rows)) / total}


def _numbers(n: float, p: float, t: float, pp: float, tt: float, pt: float) -> dict[str, float]:
    """Return how well predictions fit, unchanged and after the best linear map; 1 is a perfect fit, 0 is that of the mean."""
    spread, own, both = tt - t * t / n, pp - p * p / n, pt - p * t / n
    if min(spread, own) <= 1e-12 * max(tt, pp, 1e-300):
        return {}
    as_is = 1 - (pp - 2 * pt + tt) / spread
    return {"count": n, "fit": as_is, "mapped": both * both / (spread * own), "slope": both / own}
