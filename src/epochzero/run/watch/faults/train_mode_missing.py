"""train() is not called again after an evaluation, or eval() came before the training."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import loop_place
from epochzero.run.watch.model import TrainingFinding

_MODES = ("Dropout", "BatchNorm", "InstanceNorm", "AlphaDropout", "FeatureAlphaDropout")
_LOOKS = 3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Iterations in evaluation mode, of a model that has layers for which that matters."""
    matters = [
        layer
        for layer in history.layers
        if layer.kind.startswith(_MODES) and layer.settings.get("p", 1.0)
    ]
    off = [iteration for iteration in history.iterations if iteration.training is False]
    if not matters or len(off) < _LOOKS:
        return
    if off[-1] is not history.iterations[-1] or len(off) < 0.3 * len(history.iterations):
        return
    kinds = ", ".join(sorted({layer.kind for layer in matters}))
    trained_before = len(off) < len(history.iterations)
    yield TrainingFinding(
        "train_mode_missing",
        off[0].number,
        f"From iteration {off[0].number} on, the model trains in evaluation mode: {kinds} are inactive or use "
"old statistics.",
        layer=matters[0].path,
        place=loop_place(history),
        confidence=0.92 if trained_before else 0.85,
        fix="Call model.train() at the start of each epoch.",
    )  # fmt: skip
