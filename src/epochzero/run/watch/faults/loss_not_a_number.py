"""The loss is NaN or infinite; where the graph tells, the first operator that made it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines import place_of
from epochzero.run.watch.model import TrainingFinding

_MAKERS = {
    "LogBackward0": ("self", "the logarithm of zero or less"),
    "Log2Backward0": ("self", "the logarithm of zero or less"),
    "Log10Backward0": ("self", "the logarithm of zero or less"),
    "Log1PBackward0": ("self", "the logarithm of zero or less"),
    "DivBackward0": ("other", "a division by zero"),
    "SqrtBackward0": ("result", "the root of zero or less"),
    "RsqrtBackward0": ("result", "the root of zero or less"),
    "ExpBackward0": ("result", "an exponential that overflows"),
    "PowBackward0": ("self", "a power that overflows, or a root of less than zero"),
    "AcosBackward0": ("self", "an angle out of range"),
}


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The first loss that is no number, and what the operators before it had saved."""
    loss = history.loss
    bad = ~np.isfinite(loss[:, 1]) if len(loss) else np.empty(0, bool)
    if not bad.any() and not history.nonfinite:
        return
    since = (
        int(loss[int(np.argmax(bad)), 0]) if bad.any() else int(history.nonfinite[0]["iteration"])
    )
    record = next(iter(history.nonfinite), None)
    made = _made(record) if record else ""
    yield TrainingFinding(
        "loss_not_a_number",
        since,
        f"The loss is not finite from iteration {since} on{made}.",
        place=place_of(record) if record else None,
        confidence=0.99,
        series="loss",
    )


def _made(record: Record) -> str:
    for operator in record.get("operators", ()):
        name = operator["operator"]
        saved, words = _MAKERS.get(name, ("", ""))
        values = operator["saved"].get(saved)
        if values and (values["zeros"] or values["negative"] or values["nonfinite"]):
            return f": the first operator that produces it is {words} ({name.removesuffix('Backward0').lower()})"
    return ""
