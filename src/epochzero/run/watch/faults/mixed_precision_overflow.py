"""Values or gradients leave the range of half precision, and are not scaled."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.layers import precision_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Infinite values, or gradients that are zero, in a model that computes in half precision."""
    found = course(history)
    for iteration in history.iterations:
        half = [path for path, layer in iteration.layers.items() if layer.get("dtype") == "float16"]
        if not half:
            continue
        broken = [path for path in half if iteration.layers[path].get("nonfinite", 0) > 0]
        gradients = [of["gradient"] for of in iteration.parameters.values() if "gradient" in of]
        gone = [g for g in gradients if g["zeros"] > 0.9 or g["nonfinite"] > 0]
        if (
            broken
            or (gradients and len(gone) > 0.5 * len(gradients))
            or (found and not found.finite)
        ):
            where = broken[0] if broken else ""
            yield TrainingFinding(
                "mixed_precision_overflow",
                iteration.number,
                "In half precision "
                + (f"{where} returns infinity" if broken else "gradients are zero or infinite")
                + ": its range is 6e-8 to 65,504.",
                layer=where,
                place=precision_place(history),
                confidence=0.8,
                fix="Use bfloat16, or torch.amp.GradScaler, and keep losses and sums in float32.",
            )  # fmt: skip
            return
