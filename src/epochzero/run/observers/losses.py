"""A loss that is no number any more: NaN or infinite."""

from __future__ import annotations

import math
from collections.abc import Iterator

from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobEvent


class LossWatch:
    """Tells when the loss has become NaN or infinite, once until it is a number again."""

    def __init__(self) -> None:
        self._finite = True

    def look(self, loss: float | None, clock: Clock) -> Iterator[JobEvent]:
        """The event, where there is one to report; None is no news."""
        if loss is None:
            return
        was_finite, self._finite = self._finite, math.isfinite(loss)
        if was_finite and not self._finite:
            yield JobEvent(*clock.now(), "loss_not_finite", f"the loss is {loss}")
