"""eval() is not called: dropout and batch statistics act in the evaluation."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import evaluations
from epochzero.run.watch.history import Evaluation, TrainingHistory
from epochzero.run.watch.lines.training import evaluation_place
from epochzero.run.watch.model import TrainingFinding

_MODES = ("Dropout", "BatchNorm", "InstanceNorm", "AlphaDropout", "FeatureAlphaDropout")


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Evaluations in training mode, of a model that has layers for which that matters."""
    matters = [
        layer
        for layer in history.layers
        if layer.kind.startswith(_MODES) and layer.settings.get("p", 1.0)
    ]
    models = {layer.model for layer in matters}
    tested = [evaluation for evaluation in evaluations(history) if _number(evaluation) in models]
    forgotten = [evaluation for evaluation in tested if evaluation.training]
    if not matters or len(forgotten) < 2 or len(forgotten) < 0.8 * len(tested):
        return
    kinds = ", ".join(sorted({layer.kind for layer in matters}))
    yield TrainingFinding(
        "eval_mode_missing",
        forgotten[0].iteration,
        f"All {len(forgotten)} evaluations ran in training mode, and the model has {kinds}.",
        layer=matters[0].path,
        place=evaluation_place(forgotten[0].place),
        confidence=0.82,
        fix="Call model.eval() before each evaluation, and model.train() after it.",
    )


def _number(evaluation: Evaluation) -> int:
    """Of the model that was called."""
    number = evaluation.model.partition("/")[0]
    return int(number) if number.isdigit() else 0
